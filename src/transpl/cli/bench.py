"""`transpl bench` and `transpl table`: many runs, and the tables made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import InputError, check_choice, invalid
from transpl.cli.command import CHOICE, RUNNING
from transpl.cli.options import (
    AsJson,
    Plugins,
    log,
    print_json,
    read_seeds,
    read_settings,
    setting_value,
    split_assignments,
    split_commas,
    split_setting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transpl.benchmark import Plan, RunSpec, Store, TableQuery

_FAILED = 1

Out = Annotated[
    Path,
    typer.Option(file_okay=False, help="Folder of the results; the same folder again makes only what is missing."),
]
Names = Annotated[
    list[str] | None,
    typer.Option(help="Data sets, as ucihar,wisdm. Default with --table: all of that table.", callback=split_commas),
]
Grid = Annotated[
    list[str] | None,
    typer.Option(help="Values to try, as adapt_lr=1e-3,5e-4.", callback=split_assignments, rich_help_panel=CHOICE),
]


def bench(
    out: Out = Path("transpl-bench"),
    dataset: Names = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            help="As no-adapt,transpl-plus (see `transpl methods`), or all (that need no groups).",
            callback=split_commas,
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many, 3 is 0, 1 and 2; or which, as 0,1,2. Default: 1.")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(help="As 2-11,6-23. Default: all pairs of the data set.", callback=split_commas),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="The runs of a table: full, pseudo, weak, ablation, patch, codebook, beyond or cnn."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="A YAML file with plans, instead of the options above.", rich_help_panel=CHOICE),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings: paper (default), cnn, or a method's own preset such as adatime.", rich_help_panel=CHOICE
        ),
    ] = None,
    normalise: Annotated[
        str | None,
        typer.Option(
            help="Scale channels: none (default), domain (each by its train part) or per_split (AdaTime).",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Other settings, as max_epochs=40,width=16, for methods that have them.",
            callback=split_assignments,
            metavar="NAME=VALUE",
        ),
    ] = None,
    grid: Grid = None,
    plugins: Plugins = None,
    done: Annotated[
        list[Path] | None,
        typer.Option(help="A CSV of --save-lines: runs that have a line in it are not made.", rich_help_panel=CHOICE),
    ] = None,
    save_lines: Annotated[
        Path | None, typer.Option(help="CSV to which each run appends a line; runs that have one are not made.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time, one thread each.")] = 1,
    backend: Annotated[str, typer.Option(help="loky, dask, ray or inline.", rich_help_panel=RUNNING)] = "loky",
    address: Annotated[
        str | None, typer.Option(help="Of a running dask or ray cluster.", rich_help_panel=RUNNING)
    ] = None,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a failed run is tried again.", rich_help_panel=RUNNING)
    ] = 1,
    device: Annotated[
        str, typer.Option(help="cpu, cuda or auto; several runs may share a GPU.", rich_help_panel=RUNNING)
    ] = "cpu",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the missing runs and an estimate of time.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Say what is complete, and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run methods on pairs of domains; interrupted, it goes on where it was.

    Every result is a file of its own, written at once. A run that fails leaves a record and the others go on.
    """
    from transpl.benchmark import (
        Store,
        add_lines,
        import_plugins,
        line_of,
        missing_lines,
        row_names,
        run_plan,
        saving_lines,
        show_progress,
        status_facts,
        status_lines,
    )

    store = Store(out)
    import_plugins(plugins or ())
    plans: list[Plan] = []
    if status and not (dataset or table or plan):
        specs = _used(store, "out").planned()
    else:
        chosen = None if seeds is None else read_seeds(seeds)
        plans = _plans(dataset, methods, chosen, pairs, table, plan, preset, normalise, change, grid)
        specs = list({spec.digest: spec for each in plans for spec in each.runs()}.values())
    files = [*(done or ()), *([save_lines] if save_lines is not None and save_lines.exists() else ())]
    specs = _without_lines(specs, store, files)
    if as_json and not (status or dry_run):
        advice = "Read results by `transpl table --json`."
        raise invalid("--json", expected="--status or --dry-run beside it", got="neither", advice=advice)
    if status or dry_run:
        if as_json:
            print_json(status_facts(store, specs, jobs))
            return
        for line in missing_lines(store, specs, jobs) if dry_run else status_lines(store, specs, jobs):
            typer.echo(line)
        return
    store.plan(specs)
    log(f"{len(specs)} runs, {len(specs) - len(store.missing(specs))} of them finished")
    names = row_names(plans)
    if save_lines is not None:
        finished = ((spec, result) for spec in specs if (result := store.find(spec)) is not None)
        add_lines(save_lines, [line_of(*run, names) for run in finished])
    runs = run_plan(
        specs,
        out,
        jobs=jobs,
        backend=backend,
        retries=retries,
        device=device,
        address=address,
        plugins=plugins or (),
    )
    if save_lines is not None:
        runs = saving_lines(runs, save_lines, names)
    failed = sum(done.error is not None for done in show_progress(runs, specs, out, jobs))
    missing = len(store.missing(specs))
    log(f"{len(specs) - missing} of {len(specs)} runs finished; results in {out}")
    if failed or missing:  # results may have been deleted meanwhile
        raise typer.Exit(_FAILED)


def table(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `transpl bench` wrote, or a CSV of its lines (--save-lines).")
    ],
    which: Annotated[
        str | None,
        typer.Option(
            help="A table: full, pseudo, weak, ablation, patch, codebook, beyond, cnn or pairs.",
            show_default="all: what the folder holds",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data sets. Default: those that have runs.", callback=split_commas)
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Only these, others than the paper's too.", callback=split_commas)
    ] = None,
    format: Annotated[str, typer.Option(help="markdown, csv, latex or json.")] = "markdown",
    metric: Annotated[
        str, typer.Option(help="For pairs and statistics: accuracy, macro_f1 or binary_f1.")
    ] = "accuracy",
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings of the rows: paper, cnn, or a method's own. Default: the table's.", rich_help_panel=CHOICE
        ),
    ] = None,
    normalise: Annotated[
        str | None,
        typer.Option(
            help="How channels were scaled: none, domain or per_split. Default: as the table.", rich_help_panel=CHOICE
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Settings of the runs, as max_epochs=40. Default: those that the runs share.",
            callback=split_assignments,
            metavar="NAME=VALUE",
        ),
    ] = None,
    grid: Grid = None,
    select: Annotated[
        str,
        typer.Option(
            help="Rule that chooses in a grid: source_risk, iwcv, dev, few_shot or target_oracle.",
            rich_help_panel=CHOICE,
        ),
    ] = "source_risk",
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Fingerprint of the data, if a data set was run in several versions.",
            callback=split_commas,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Ranks and tests over pairs, after the table (markdown).")
    ] = False,
    runs: Annotated[
        bool, typer.Option("--runs", help="Instead of means every run on a line of its own, as CSV.")
    ] = False,
    plugins: Plugins = None,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
    as_json: AsJson = False,
) -> None:
    """A table of the paper from results: ours, the published figure, the difference, and what is missing."""
    from transpl._utils.files import write_text
    from transpl.benchmark import Store, TableQuery, import_plugins

    form = "json" if as_json else format
    if which is None:
        which = "full" if grid or preset is not None else "all"
    _check_table(which, form, metric, statistics, runs)
    if not folder.is_file():
        _used(Store(folder), "folder")
    elif runs:
        raise invalid("--runs", expected="a folder", got=folder, advice="This file has a line per run already.")
    import_plugins(plugins or ())
    query = TableQuery(preset, *_settings_and_grid(change, grid), select, methods or (), data or (), normalise)
    text = _table_text(folder, which, dataset or (), "runs" if runs else form, metric, query)
    if statistics:
        text += "\n" + _statistics(folder, "all" if which == "pairs" else which, dataset or (), metric, query)
    text = text.removesuffix("\n")
    if out is None:
        typer.echo(text)
    else:
        write_text(out, text + "\n")
        log(f"wrote {out}")


def _check_table(which: str, format: str, metric: str, statistics: bool, runs: bool) -> None:
    from transpl.benchmark.paper_tables import TABLES
    from transpl.benchmark.rendering import FORMATS
    from transpl.benchmark.score_tables import ALL, SCORES

    check_choice("which", which, (*TABLES, "pairs", ALL))
    check_choice("format", format, FORMATS)
    check_choice("metric", metric, SCORES)
    if statistics and (runs or format != "markdown"):
        got = "--runs" if runs else format
        raise invalid("--statistics", expected="--format markdown", got=got, advice="Ask for them separately.")
    if runs and (which == "pairs" or format in ("latex", "json")):
        got = "--which pairs" if which == "pairs" else f"--format {format}"
        raise invalid("--runs", expected="another table, as CSV", got=got, advice="Leave one of them out.")


def _table_text(folder: Path, which: str, datasets: Sequence[str], form: str, metric: str, query: TableQuery) -> str:
    from transpl.benchmark import pair_table_from, paper_table_from, render, runs_as_csv

    if form == "runs":
        return runs_as_csv(folder, which, datasets, query)
    if which == "pairs":
        return render(pair_table_from(folder, _one_dataset(folder, datasets, query), metric, query), form)
    return render(paper_table_from(folder, which, datasets, query), form)


def _one_dataset(folder: Path, datasets: Sequence[str], query: TableQuery) -> str:
    """The data set of a table of pairs: the one named, or the only one there is."""
    from transpl.benchmark.run_index import RunIndex

    known = list(datasets) or RunIndex(folder, query.data).datasets()
    if len(known) != 1:
        got = ", ".join(known) or "none"
        raise invalid("dataset", expected="one data set for pairs", got=got, advice="Pass --dataset ucihar.")
    return known[0]


def _plans(
    dataset: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: Sequence[int] | None,
    pairs: Sequence[str] | None,
    table: str | None,
    plan: Path | None,
    preset: str | None,
    normalise: str | None,
    change: Sequence[str] | None,
    grid: Sequence[str] | None,
) -> list[Plan]:
    from transpl.benchmark import Plan, only_methods, paper_table, read_plans, rows_of, with_changes
    from transpl.datasets.pairs import parse_pair

    if plan is not None:
        if any((dataset, methods, seeds, pairs, table, preset, normalise, change, grid)):
            raise InputError("plan: a plan says itself what to run. Leave out the other options.")
        return read_plans(plan)
    changes, values = _settings_and_grid(change, grid)
    own_preset, own_normalise = "paper", "none"
    if table is None:
        if not dataset:
            raise invalid("dataset", expected="a name", got="none", advice="Pass --dataset ucihar, or --table full.")
        rows = {name: rows_of(methods or ("all",), changes) for name in dataset}
    else:
        of_table = paper_table(table)
        own_preset, own_normalise = of_table.preset, of_table.normalise
        names = dataset or of_table.datasets
        rows = {name: with_changes(only_methods(of_table.rows(name), methods or ()), changes) for name in names}
    chosen = tuple(parse_pair(pair) for pair in pairs or ())
    return [
        Plan(
            name,
            rows[name],
            chosen,
            tuple(seeds or (0,)),
            preset or own_preset,
            values,
            normalise or own_normalise,
        )
        for name in rows
    ]


def _without_lines(specs: Sequence[RunSpec], store: Store, files: Sequence[Path]) -> list[RunSpec]:
    """The runs without a line in any of the files; those that the folder has itself stay."""
    from transpl.benchmark import finished_runs

    finished = finished_runs(files)
    left = [spec for spec in specs if spec.digest not in finished or store.has(spec)]
    if len(left) < len(specs):
        log(f"{len(specs) - len(left)} of {len(specs)} runs have a line in {', '.join(map(str, files))}")
    return left


def _used(store: Store, argument: str) -> Store:
    if not store.is_used:
        expected = "a folder that `transpl bench` wrote"
        raise invalid(argument, expected=expected, got=store.folder, advice="Run `transpl bench` first.")
    return store


def _statistics(folder: Path, which: str, datasets: Sequence[str], metric: str, query: TableQuery) -> str:
    from transpl.benchmark import scores_by_pair, statistics_over_pairs

    scores = scores_by_pair(folder, which, datasets, metric, query)
    if len(scores) < 2:
        expected, got = "two methods or more that this table has results of", ", ".join(scores) or "none"
        is_all = which == "all"
        advice = "Run another method to compare with." if is_all else "Leave out --which, to compare all that was run."
        raise invalid("--statistics", expected=expected, got=got, advice=advice)
    found = statistics_over_pairs(scores)
    lines = [f"{metric} over {len(found.pairs)} pairs ({len(found.left_out)} incomplete ones left out), average rank:"]
    lines += [f"  {rank:5.2f}  {name}" for name, rank in zip(found.methods, found.average_ranks, strict=True)]
    lines.append(f"{found.methods[0]} against each: mean difference, pairs won-tied-lost, p:")
    for test in found.tests:
        if test.first == found.methods[0]:
            pairs = f"{test.wins}-{test.ties}-{test.losses}"
            lines.append(f"  {test.mean_difference:+5.1f} {pairs:>8}  {test.p:.3f}  {test.second}")
    lines.append("not told apart: " + ("; ".join(", ".join(group) for group in found.groups) or "none"))
    if found.too_few_pairs:
        lines.append("no two of them can be, however large the differences: there are too few pairs")
    else:
        least = f"{found.critical_difference:.2f}"
        lines.append(f"told apart are average ranks that differ by {least} or more (Nemenyi's test, ranks shuffled)")
    return "\n".join(lines)


def _settings_and_grid(
    change: Sequence[str] | None, grid: Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    tried = (split_setting(each, "--grid") for each in grid or ())
    return read_settings(change, "--set"), {
        name: [setting_value(part) for part in text.split(",")] for name, text in tried
    }
