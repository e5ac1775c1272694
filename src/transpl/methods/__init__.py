"""One file per method, one contract, one registry. Methods receive arrays and return arrays; they know no files,
pairs or tables.
"""

from transpl.methods.base import Labelled, LearntRows, Method, PseudoLabels, SourceModel
from transpl.methods.transpl import TransPLMethod
from transpl.methods.transpl_settings import TransPLSettings

__all__ = ["Labelled", "LearntRows", "Method", "PseudoLabels", "SourceModel", "TransPLMethod", "TransPLSettings"]
