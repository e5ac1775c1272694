"""`transpl bench` and `transpl table`: many runs, and the tables they make. Thin: parses, calls, prints."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl.errors import InputError, wrong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transpl.benchmark.plan import Plan
    from transpl.benchmark.spec import RunSpec
    from transpl.benchmark.tabulate import Reading

_FAILED = 1

Out = Annotated[Path, typer.Option(help="Folder of the results; the same folder again makes only what is missing.")]
Names = Annotated[list[str] | None, typer.Option(help="Data sets. Default with --table: all of that table.")]


def bench(
    out: Out = Path("transpl-bench"),
    dataset: Names = None,
    methods: Annotated[list[str] | None, typer.Option(help="Names as in `transpl methods`, or all.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: 3 is 0, 1 and 2.")] = 1,
    pairs: Annotated[list[str] | None, typer.Option(help="As 2-11. Default: all pairs of the data set.")] = None,
    table: Annotated[
        str | None, typer.Option(help="The runs of a table: full, pseudo, weak, ablation, patch or codebook.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="A YAML file with plans, instead of the options above.")] = None,
    preset: Annotated[str, typer.Option(help="Settings: paper, or a method's own preset such as adatime.")] = "paper",
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Another setting, as max_epochs=40, for methods that have it.")
    ] = None,
    grid: Annotated[list[str] | None, typer.Option(help="Values to try, as adapt_lr=1e-3,5e-4.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time, one thread each.")] = 1,
    backend: Annotated[str, typer.Option(help="loky, dask, ray or inline.")] = "loky",
    address: Annotated[str | None, typer.Option(help="Of a running dask or ray cluster.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a failed run is tried again.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto; several runs may share a GPU.")] = "cpu",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the missing runs and an estimate of time.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Say what is complete, and stop.")] = False,
) -> None:
    """Run methods on pairs of domains; interrupted, it goes on where it was.

    Every result is a file of its own, written at once. A run that fails leaves a record and the others go on.
    """
    from transpl.benchmark.store import Store

    store = Store(out)
    if status and not (dataset or table or plan):
        specs = store.planned()
    else:
        plans = _plans(dataset, methods, seeds, pairs, table, plan, preset, change, grid)
        specs = list({spec.digest: spec for each in plans for spec in each.runs()}.values())
    missing = store.missing(specs)
    if status or dry_run:
        _list(store, specs, missing, jobs, every=dry_run)
        return
    store.plan(specs)
    _say(f"{len(specs)} runs, {len(specs) - len(missing)} of them finished")
    failed = _run(specs, out, jobs=jobs, backend=backend, retries=retries, device=device, address=address)
    _say(f"{len(specs) - len(store.missing(specs))} of {len(specs)} runs finished; results in {out}")
    if failed:
        raise typer.Exit(_FAILED)


def table(
    folder: Annotated[Path, typer.Argument(help="A folder that `transpl bench` wrote.")],
    which: Annotated[str, typer.Option(help="full, pseudo, weak, ablation, patch, codebook or pairs.")] = "full",
    dataset: Names = None,
    format: Annotated[str, typer.Option(help="markdown, csv or latex.")] = "markdown",
    metric: Annotated[
        str, typer.Option(help="For pairs and statistics: accuracy, macro_f1 or binary_f1.")
    ] = "accuracy",
    preset: Annotated[str, typer.Option(help="Settings of the rows: paper, or a method's own preset.")] = "paper",
    change: Annotated[list[str] | None, typer.Option("--set", help="A setting of the runs, as max_epochs=40.")] = None,
    grid: Annotated[list[str] | None, typer.Option(help="The grid that was run, as adapt_lr=1e-3,5e-4.")] = None,
    select: Annotated[
        str, typer.Option(help="Rule that chooses in a grid: source_risk, iwcv, dev, few_shot or target_oracle.")
    ] = "source_risk",
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Ranks and tests over pairs, after the table.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """A table of the paper from results: ours, the published figure, the difference, and what is missing."""
    from transpl.benchmark.rendering import render
    from transpl.benchmark.tabulate import Reading, pair_table_from, paper_table_from
    from transpl.files import write_text

    if not folder.is_dir():
        raise wrong("folder", expected="a folder of results", got=folder, advice="Run `transpl bench` first.")
    how = Reading(preset, _settings(change), _grid(grid), select)
    if which == "pairs":
        if not dataset or len(dataset) != 1:
            raise wrong("dataset", expected="one data set for pairs", got=dataset, advice="Pass --dataset ucihar.")
        made = pair_table_from(folder, dataset[0], metric, how)
    else:
        made = paper_table_from(folder, which, dataset or (), how)
    text = render(made, format)
    if statistics:
        text += "\n" + _statistics(folder, "full" if which == "pairs" else which, dataset or (), metric, how)
    if out is None:
        typer.echo(text)
    else:
        write_text(out, text + "\n")


def _plans(
    dataset: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: int,
    pairs: Sequence[str] | None,
    table: str | None,
    plan: Path | None,
    preset: str,
    change: Sequence[str] | None,
    grid: Sequence[str] | None,
) -> list[Plan]:
    from transpl.benchmark.paper_tables import paper_table
    from transpl.benchmark.plan import Plan, parse_pair, read_plans, rows_of

    if plan is not None:
        if dataset or methods or table:
            raise InputError("plan: a plan names its data sets and methods itself. Leave out the other options.")
        return read_plans(plan)
    chosen = tuple(parse_pair(pair) for pair in pairs or ())
    changes = _settings(change)
    if table is None:
        if not dataset:
            raise wrong("dataset", expected="a name", got="none", advice="Pass --dataset ucihar, or --table full.")
        rows = {name: rows_of(methods or ("all",), changes) for name in dataset}
    else:
        of_table = paper_table(table)
        rows = {name: _with(of_table.rows(name), methods, changes) for name in dataset or of_table.datasets}
    return [Plan(name, rows[name], chosen, tuple(range(seeds)), preset, _grid(grid)) for name in rows]


def _with(rows: Sequence[Any], methods: Sequence[str] | None, changes: dict[str, Any]) -> tuple[Any, ...]:
    from transpl.benchmark.plan import with_changes

    wanted = None if not methods or "all" in methods else set(methods)
    return tuple(row for row in with_changes(rows, changes) if wanted is None or row.method in wanted)


def _run(specs: Sequence[RunSpec], out: Path, **how: Any) -> int:
    from transpl.benchmark.progress import watched
    from transpl.benchmark.runner import run_plan

    failed = 0
    for done in watched(run_plan(specs, out, **how), specs, out, how["jobs"]):
        failed += done.error is not None
    return failed


def _list(store: Any, specs: Sequence[RunSpec], missing: Sequence[RunSpec], jobs: int, *, every: bool) -> None:
    from transpl.benchmark.estimate import Timings, in_words

    timings = Timings(store.results())
    for spec in missing if every else ():
        seconds = timings.seconds(spec)
        typer.echo(f"{spec}  {'?' if seconds is None else in_words(seconds)}")
    failures = [failure for spec in missing if (failure := store.failure(spec)) is not None]
    for failure in failures:
        typer.echo(f"failed: {failure.spec}: {failure.error}")
    total, unknown = timings.total(missing, jobs)
    guess = f", about {in_words(total)}" + (f" and {unknown} runs of unknown length" if unknown else "")
    counts = f"{len(specs) - len(missing)} finished, {len(missing)} missing, {len(failures)} of them failed"
    typer.echo(f"{len(specs)} runs: {counts}{guess if missing else ''}")


def _statistics(folder: Path, which: str, datasets: Sequence[str], metric: str, how: Reading) -> str:
    from transpl.benchmark.statistics import statistics_over_pairs
    from transpl.benchmark.tabulate import scores_by_pair

    found = statistics_over_pairs(scores_by_pair(folder, which, datasets, metric, how))
    lines = [f"{metric} over {len(found.pairs)} pairs ({len(found.left_out)} incomplete ones left out), average rank:"]
    lines += [f"  {rank:5.2f}  {name}" for name, rank in zip(found.methods, found.average_ranks, strict=True)]
    lines.append(
        "not told apart (Wilcoxon, Holm): " + ("; ".join(", ".join(group) for group in found.groups) or "none")
    )
    return "\n".join(lines)


def _settings(change: Sequence[str] | None) -> dict[str, Any]:
    return {name: _value(text) for name, text in (_split(each, "--set") for each in change or ())}


def _grid(grid: Sequence[str] | None) -> dict[str, list[Any]]:
    given = (_split(each, "--grid") for each in grid or ())
    return {name: [_value(part) for part in text.split(",")] for name, text in given}


def _split(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise wrong(option, expected="name=value", got=repr(text), advice="As max_epochs=40.")
    return name, value


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _say(message: str) -> None:
    typer.echo(message, err=True)
