"""The commands that run the main job, `transpl adapt` and `transpl demo`: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import invalid
from transpl.cli.options import (
    Columns,
    Device,
    DomainColumn,
    GroupColumn,
    Parameters,
    Step,
    Threads,
    TimeColumn,
    Window,
    parameters,
    read_and_say,
    reading_of,
    say,
)

if TYPE_CHECKING:
    import pandas as pd

    from transpl.datasets import Dataset
    from transpl.datasets.recordings.reading import Recordings
    from transpl.jobs import Outcome

_FAILED = 1
_LOW = 0.6  # estimated accuracy below which a person should label some windows
_DEMO_WATCH_PAIR = (8, 4)  # gains much, and the same with every seed; the ten pairs are in docs/beyond.md
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Epochs = Annotated[int, typer.Option(min=1, help="Of paper: at most so many epochs per phase.")]
Mode = Annotated[
    str | None,
    typer.Option(
        help="Of paper: finetune trains on the pseudo-labels, markov does without a gradient step.",
        show_default="finetune for paper",
    ),
]
Variant = Annotated[
    str, typer.Option(help="plus: several cheap witnesses, judged without labels; paper: the paper's, needs torch.")
]
Undo = Annotated[
    str,
    typer.Option(
        help="What may be undone of what the target's sensors suffered: auto, none, or kinds as turn,unit (dead, unit, "
        "turn, mirror, flip, swap, pace)."
    ),
]
Triads = Annotated[
    str | None,
    typer.Option(
        help="Channels x y z of one sensor, as 'ax ay az' or 'ax ay az, gx gy gz'.", show_default="found by their names"
    ),
]


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("transpl-demo"),
    dataset: Annotated[str, typer.Option(help="watch, synthetic, or a prepared set in $TRANSPL_DATA.")] = "watch",
    pair: Annotated[
        str | None,
        typer.Option(help="Source and target domain, as 2-7. Default: 8-4 of watch, the first pair of others."),
    ] = None,
    variant: Variant = "plus",
    mode: Mode = None,
    seed: Seed = 0,
    epochs: Epochs = 40,
    learning_rate: Annotated[
        float, typer.Option(help="Of paper: of both phases. Higher than the paper's, to be fast.")
    ] = 2e-3,
    undo: Undo = "auto",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads. Another number rounds differently.")] = 1,
    device: Device = "auto",
    change: Parameters = None,
) -> None:
    """Adapt from one person to another on real data that pip installs, and write a report to open.

    The scores are printed as they come out, good or bad.
    """
    from transpl import TransPL, datasets, jobs
    from transpl.datasets.pairs import parse_pair
    from transpl.estimator import check_mode

    chosen = parameters(
        ctx,
        change,
        variant=variant,
        random_state=seed,
        max_epochs=epochs,
        source_lr=learning_rate,
        adapt_lr=learning_rate,
        n_threads=threads,
        device=device,
        undo=_kinds(undo),
    )
    model = TransPL(**chosen, verbose=True).check_parameters()
    check_mode(variant, mode)
    data = datasets.load(dataset)
    source, target = _default_pair(data) if pair is None else parse_pair(pair, "--pair")
    job = jobs.from_dataset(data, source, target, mode=mode, all_source=True, hold_out=model.needs_validation)
    say(f"{data.name}: domain {source} (labelled) to domain {target} (labels hidden, used for scoring only)")
    _report_and_tell(jobs.run(job, model, out, say))


def adapt(
    ctx: typer.Context,
    source: Annotated[Path, typer.Option(help="Labelled source recordings: npz, csv or parquet.")],
    target: Annotated[
        list[Path],
        typer.Option(
            help="Target recordings, whose labels only score. May be repeated, or be a quoted pattern: 'homes/*.npz'."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for model, predictions, metrics and report.")],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[TARGET]...", help="More of --target.")] = None,
    label_col: Annotated[str | None, typer.Option(help="Column with the class (csv, parquet).")] = None,
    domain_col: DomainColumn = None,
    source_domain: Annotated[str | None, typer.Option(help="Use only these rows of --source.")] = None,
    target_domain: Annotated[str | None, typer.Option(help="Use only these rows of --target.")] = None,
    time_col: TimeColumn = None,
    group_col: GroupColumn = None,
    channels: Columns = None,
    window: Window = None,
    step: Step = None,
    prior: Annotated[str | None, typer.Option(help="Known class shares of the target, as walk=0.6,sit=0.4.")] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(help="Target windows that you labelled, as `transpl review` lists them. May be repeated."),
    ] = None,
    source_from: Annotated[
        Path | None,
        typer.Option(help="Folder of an earlier adapt with the same source, whose source model is not trained again."),
    ] = None,
    variant: Variant = "plus",
    mode: Mode = None,
    one_label_per_group: Annotated[
        bool,
        typer.Option("--one-label-per-group", help="All windows of a recording (--group-col) have the same label."),
    ] = False,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Neighbouring windows of a recording seldom have different labels.")
    ] = False,
    undo: Undo = "auto",
    triads: Triads = None,
    patch_length: Annotated[int, typer.Option(min=1, help="Samples per code.")] = 8,
    width: Annotated[int, typer.Option(min=8, help="Of paper: size of the network, 64 or 128.")] = 64,
    sigma: Annotated[float, typer.Option(help="Smaller trusts shifted channels less.")] = 0.2,
    seed: Seed = 0,
    epochs: Epochs = 200,
    threads: Threads = None,
    device: Device = "auto",
    change: Parameters = None,
    n_jobs: Annotated[int, typer.Option("--jobs", min=1, help="Of several targets, so many at the same time.")] = 1,
    backend: Annotated[
        str, typer.Option(help="Where several targets are adapted to: loky, dask, ray, inline.")
    ] = "loky",
    address: Annotated[str | None, typer.Option(help="Of a running dask or ray cluster.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="Of several targets, how often a failed one is tried again.")] = 0,
) -> None:
    """Adapt a classifier from labelled recordings to unlabelled ones; go on where an interrupted run stopped.

    Several targets share one source model. Each gets a folder of its own in --out; one that fails costs only itself.
    """
    from transpl import TransPL, jobs
    from transpl._utils.parallel import check_workers
    from transpl.estimator import check_mode

    chosen = parameters(
        ctx,
        change,
        variant=variant,
        random_state=seed,
        max_epochs=epochs,
        n_threads=threads,
        device=device,
        patch_length=patch_length,
        width=width,
        sigma=sigma,
        undo=_kinds(undo),
        triads=_triads(triads),
    )
    model = TransPL(**chosen, verbose=True).check_parameters()  # before files are read that may take long
    check_mode(variant, mode)
    jobs.check_grouping(model, one_label_per_group, smooth)
    files, are_many = _files([*target, *(more or ())], labels or ())
    workers: dict[str, Any] = {"jobs": n_jobs, "backend": backend, "retries": retries, "address": address}
    if are_many:
        check_workers(**workers)
        _refuse_for_many("--one-label-per-group", one_label_per_group)
        _refuse_for_many("--smooth", smooth)
    how: dict[str, Any] = {"source_name": source_domain or source.stem, "prior": _shares(prior), "mode": mode}
    how["hold_out"] = model.needs_validation
    reading = reading_of(domain_col, time_col, group_col, channels, window, step)
    lab = read_and_say(source, domain=source_domain, label_col=label_col, **reading)
    reading = _as_the_source(reading, lab)
    field = {"domain": target_domain, "label_col": label_col, **reading}
    if are_many:
        many = jobs.ManyJob.from_recordings(lab, files, field, **how)
        _tell_many(jobs.run_many(many, model, out, say, source_from=source_from, **workers), out)
        return
    how |= {"target_name": target_domain or files[0].stem, "labels": labels or (), "reading": reading}
    how |= {"one_label_per_group": one_label_per_group, "smooth": smooth}
    job = jobs.from_recordings(lab, read_and_say(files[0], labels_only_score=True, **field), **how)
    _report_and_tell(jobs.run(job, model, out, say, source_from=source_from))


def _report_and_tell(outcome: Outcome) -> None:
    from transpl.report import write_report

    write_report(outcome.folder)
    _tell(outcome)


def _kinds(undo: str) -> str | tuple[str, ...]:
    """As the parameter `undo` takes them."""
    kinds = tuple(undo.replace(",", " ").split())
    return kinds[0] if len(kinds) == 1 else kinds


def _triads(text: str | None) -> tuple[tuple[str | int, ...], ...] | None:
    """As the parameter `triads` takes them; a whole number is the number of a channel."""
    if text is None:
        return None
    return tuple(tuple(int(name) if name.isdigit() else name for name in part.split()) for part in text.split(","))


def _refuse_for_many(option: str, given: bool) -> None:
    if given:
        raise invalid(option, expected="one target", got="several", advice="Adapt to each by itself.")


def _files(targets: Sequence[Path], labels: Sequence[Path]) -> tuple[list[Path], bool]:
    """The files to adapt to, and whether they are many, each with a folder of its own, or one."""
    from transpl.jobs import expand_patterns, is_pattern

    files, are_many = expand_patterns(targets), len(targets) > 1 or is_pattern(targets[0])
    if are_many and labels:
        got = f"{len(files)}, or a pattern"
        raise invalid("--labels", expected="one target", got=got, advice="Adapt to this one by itself.")
    return files, are_many


def _as_the_source(reading: dict[str, Any], source: Recordings) -> dict[str, Any]:
    """How targets, and later recordings, are read: what was asked for, and what the source turned out to be."""
    found = {**reading, "window": source.X.shape[2]}  # those of an npz are as long as they are
    if source.named:
        found["channels"] = list(source.channel_names)  # other files may hold more, or in another order
    if source.interval is not None:
        found["interval"] = source.interval
    return found


def _tell(outcome: Outcome) -> None:
    """Print how good it is, as estimated and, where there are labels, in truth; what was undone; where to look."""
    metrics = outcome.metrics or {}
    names = {
        "before": "before adaptation",
        "after": "after adaptation",
        "pseudo_labels": "pseudo-labels (windows adapted to)",
    }
    estimate = metrics.get("estimated_accuracy")
    if estimate:
        low, high = 100 * estimate["low"], 100 * estimate["high"]
        typer.echo(
            f"{'estimated without labels':<34} accuracy {100 * estimate['accuracy']:5.1f} %"
            f"   (likely between {low:.0f} and {high:.0f} %)"
        )
    for key, words in names.items():
        found = metrics.get(key)
        if found and (key != "pseudo_labels" or found != metrics.get("after")):
            typer.echo(
                f"{words:<34} accuracy {100 * found['accuracy']:5.1f} %   macro-F1 {100 * found['macro_f1']:5.1f}"
                f"   ({found['windows']} windows)"
            )
    given = metrics.get("labels_given", 0)
    if given:
        typer.echo(f"the {given} windows that you labelled are not scored")
    for sentence in outcome.undone or (("Nothing was undone.",) if estimate else ()):
        typer.echo(sentence)
    if estimate and estimate["accuracy"] < _LOW:
        few = outcome.folder / "few.csv"
        typer.echo(f"that is low: label some windows (transpl review --model {outcome.folder} --out {few})")
    typer.echo(f"open {outcome.folder / 'report.html'}")


def _tell_many(table: pd.DataFrame, out: Path) -> None:
    """Print a row per target; some that failed make the exit code 1."""
    from transpl.jobs import table_as_text

    typer.echo(table_as_text(table))
    say(f"wrote {out / 'summary.csv'}")
    if table["error"].notna().any():
        raise typer.Exit(_FAILED)


def _default_pair(data: Dataset) -> tuple[int, int]:
    return _DEMO_WATCH_PAIR if data.name == "watch" else data.pairs[0]


def _shares(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    from transpl.datasets.recordings.tables import as_text

    try:
        return {str(as_text([name])[0]): float(share) for name, share in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise invalid(
            "--prior", expected="class=share pairs, as walk=0.6,sit=0.4", got=repr(text), advice="Mend it."
        ) from None
