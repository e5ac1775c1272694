"""A folder with runs that are planned, and some of them made up, for tests of tables."""

from __future__ import annotations

from tiny_bench import keep

from transpl.benchmark.paper_tables import paper_table
from transpl.benchmark.plan import Plan, rows_of, with_changes
from transpl.benchmark.run_index import TableQuery
from transpl.benchmark.run_spec import RunSpec
from transpl.benchmark.score_tables import paper_table_from
from transpl.benchmark.store import Store

PAIRS = ((0, 1), (1, 2))


class Bench:
    """A folder with runs that are planned, and some of them made up."""

    def __init__(self, folder) -> None:
        self.store = Store(folder)

    def plan(self, *methods, dataset="mine", table=None, pairs=PAIRS, seeds=(0,), data="d1", changes=None, grid=None):
        how = {} if table is None else {name: getattr(paper_table(table), name) for name in ("preset", "normalise")}
        rows = rows_of(methods, changes) if table is None else paper_table(table).rows(dataset)
        made = Plan(dataset, with_changes(rows, changes or {}), tuple(pairs), tuple(seeds), grid=grid or {}, **how)
        specs = [
            RunSpec(dataset, data, source, target, row.method, seed, settings, row.goal, made.normalise)
            for row in made.rows
            for settings in made.settings_for(row)
            for seed in made.seeds
            for source, target in made.pairs
        ]
        self.store.plan(specs)
        return specs

    def run(self, *methods, accuracy=0.5, **options):
        """Plan and finish; accuracy may be a function of the spec."""
        specs = self.plan(*methods, **options)
        for spec in specs:
            keep(self.store, spec, accuracy(spec) if callable(accuracy) else accuracy)
        return specs

    def table(self, which="full", datasets=(), **how):
        return paper_table_from(self.store.folder, which, datasets, TableQuery(**how))
