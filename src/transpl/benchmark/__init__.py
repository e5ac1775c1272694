"""Methods side by side on the same pair of domains, scored by an evaluator that alone holds the target's labels."""

from transpl.benchmark.compare import compare, settings_of
from transpl.benchmark.pair import Evaluator, Pair, split_pair
from transpl.benchmark.result import Result

__all__ = ["Evaluator", "Pair", "Result", "compare", "settings_of", "split_pair"]
