"""One file per method, one contract. Methods receive arrays and return arrays; they know no files, pairs or tables."""

from transpl.methods.base import Labelled, Method, PseudoLabels
from transpl.methods.transpl import TransPLMethod, TransPLSettings

__all__ = ["Labelled", "Method", "PseudoLabels", "TransPLMethod", "TransPLSettings"]
