"""`TransPL` as a scikit-learn classifier: the front door for people who write Python."""

from transpl.estimator.classifier import TransPL

__all__ = ["TransPL"]
