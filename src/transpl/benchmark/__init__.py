"""Methods side by side on the same pair of domains, scored by an evaluator that alone holds the target's labels.

`compare` runs methods on pairs and returns a table, `run_pair` yields results one by one. `Plan`, `run_plan` and
`Store` run many in parallel and keep the results in a folder; `paper_table_from`, `statistics_over_pairs` and
`read_leaderboard` say what came out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transpl._utils.lazy import lazy_names

if TYPE_CHECKING:
    from transpl.benchmark.comparison import compare
    from transpl.benchmark.entries import LeaderboardEntry
    from transpl.benchmark.leaderboard import (
        Comparison,
        EntryStanding,
        Leaderboard,
        LeaderboardRun,
        leaderboard_of_lines,
        read_leaderboard,
    )
    from transpl.benchmark.measures import Metric, Spread
    from transpl.benchmark.paper_tables import PaperTable, paper_table
    from transpl.benchmark.plan import (
        Plan,
        Row,
        only_methods,
        rows_of,
        settings_of,
        settings_without_seed,
        with_changes,
    )
    from transpl.benchmark.plan_files import read_plans
    from transpl.benchmark.plugins import import_plugins
    from transpl.benchmark.protocol import Evaluator, Pair, split_pair
    from transpl.benchmark.rendering import TableData, render
    from transpl.benchmark.run import run_pair
    from transpl.benchmark.run_index import TableQuery
    from transpl.benchmark.run_lines import add_lines, finished_runs, line_of, row_names, saving_lines
    from transpl.benchmark.run_spec import RunSpec, run_identity
    from transpl.benchmark.runner import RunOutcome, restore_run, run_plan
    from transpl.benchmark.score_tables import pair_table_from, paper_table_from, runs_as_csv, scores_by_pair
    from transpl.benchmark.statistics import PairedTest, Statistics, statistics_over_pairs
    from transpl.benchmark.status import missing_lines, show_progress, status_facts, status_lines
    from transpl.benchmark.store import Result, Store

__all__ = [
    "Comparison",
    "EntryStanding",
    "Evaluator",
    "Leaderboard",
    "LeaderboardEntry",
    "LeaderboardRun",
    "Metric",
    "Pair",
    "PairedTest",
    "PaperTable",
    "Plan",
    "Result",
    "Row",
    "RunOutcome",
    "RunSpec",
    "Spread",
    "Statistics",
    "Store",
    "TableData",
    "TableQuery",
    "add_lines",
    "compare",
    "finished_runs",
    "import_plugins",
    "leaderboard_of_lines",
    "line_of",
    "missing_lines",
    "only_methods",
    "pair_table_from",
    "paper_table",
    "paper_table_from",
    "read_leaderboard",
    "read_plans",
    "render",
    "restore_run",
    "row_names",
    "rows_of",
    "run_identity",
    "run_pair",
    "run_plan",
    "runs_as_csv",
    "saving_lines",
    "scores_by_pair",
    "settings_of",
    "settings_without_seed",
    "show_progress",
    "split_pair",
    "statistics_over_pairs",
    "status_facts",
    "status_lines",
    "with_changes",
]

# Stored results and tables can be read without importing torch.
__getattr__ = lazy_names(
    __name__,
    {
        "comparison": ("compare",),
        "entries": ("LeaderboardEntry",),
        "leaderboard": (
            "Comparison",
            "EntryStanding",
            "Leaderboard",
            "LeaderboardRun",
            "leaderboard_of_lines",
            "read_leaderboard",
        ),
        "measures": ("Metric", "Spread"),
        "paper_tables": ("PaperTable", "paper_table"),
        "plan": ("Plan", "Row", "only_methods", "rows_of", "settings_of", "settings_without_seed", "with_changes"),
        "plan_files": ("read_plans",),
        "plugins": ("import_plugins",),
        "protocol": ("Evaluator", "Pair", "split_pair"),
        "rendering": ("TableData", "render"),
        "run": ("run_pair",),
        "run_index": ("TableQuery",),
        "run_lines": ("add_lines", "finished_runs", "line_of", "row_names", "saving_lines"),
        "run_spec": ("RunSpec", "run_identity"),
        "runner": ("RunOutcome", "restore_run", "run_plan"),
        "score_tables": ("pair_table_from", "paper_table_from", "runs_as_csv", "scores_by_pair"),
        "statistics": ("PairedTest", "Statistics", "statistics_over_pairs"),
        "status": ("missing_lines", "show_progress", "status_facts", "status_lines"),
        "store": ("Result", "Store"),
    },
)
