"""The paper's method (Kim and Lee, ICML 2025) and its variants."""

from transpl.methods.transpl import markov, method, ws

__all__ = ["markov", "method", "ws"]
