"""The commands that run the main job, `transpl adapt` and `transpl demo`: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl.cli_options import (
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
from transpl.errors import one_of, wrong

if TYPE_CHECKING:
    import pandas as pd

    from transpl.datasets import Dataset
    from transpl.datasets.recordings import Recordings
    from transpl.jobs import Outcome

_FAILED = 1
_DEMO_WATCH_PAIR = (3, 9)
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Epochs = Annotated[int, typer.Option(min=1, help="At most so many epochs per phase.")]
Mode = Annotated[
    str | None,
    typer.Option(
        help="finetune: train on the pseudo-labels; markov: no gradient step.", show_default="markov for plus"
    ),
]
Variant = Annotated[str, typer.Option(help="plus, or paper, which needs torch.")]


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("transpl-demo"),
    dataset: Annotated[str, typer.Option(help="watch, synthetic, or a prepared set in $TRANSPL_DATA.")] = "watch",
    pair: Annotated[
        str | None,
        typer.Option(help="Source and target domain, as 2-7. Default: 3-9 of watch, the first pair of others."),
    ] = None,
    variant: Variant = "paper",
    mode: Mode = None,
    seed: Seed = 0,
    epochs: Epochs = 40,
    learning_rate: Annotated[float, typer.Option(help="Of both phases. Higher than the paper's, to be fast.")] = 2e-3,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads. Another number rounds differently.")] = 1,
    device: Device = "auto",
    change: Parameters = None,
) -> None:
    """Adapt from one person to another on real data that pip installs, and write a report to open.

    The scores are printed as they come out, good or bad.
    """
    from transpl import TransPL, datasets, jobs
    from transpl.datasets.pairs import parse_pair

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
    )
    model = TransPL(**chosen, verbose=True).check_parameters()
    _check_mode(mode)
    data = datasets.load(dataset)
    source, target = _default_pair(data) if pair is None else parse_pair(pair, "--pair")
    job = jobs.from_dataset(data, source, target, mode=mode, all_source=True)
    say(f"{data.name}: domain {source} (labelled) to domain {target} (labels hidden, used for scoring only)")
    _tell(jobs.run(job, model, out, say))


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
    variant: Variant = "paper",
    mode: Mode = None,
    patch_length: Annotated[int, typer.Option(min=1, help="Samples per code.")] = 8,
    width: Annotated[int, typer.Option(min=8, help="Size of the network: 64 or 128.")] = 64,
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
    from transpl import TransPL, jobs, jobs_many
    from transpl.parallel import check_workers

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
    )
    model = TransPL(**chosen, verbose=True).check_parameters()  # before files are read that may take long
    _check_mode(mode)
    files, are_many = _files([*target, *(more or ())], labels or ())
    workers: dict[str, Any] = {"jobs": n_jobs, "backend": backend, "retries": retries, "address": address}
    if are_many:
        check_workers(**workers)
    how: dict[str, Any] = {"source_name": source_domain or source.stem, "prior": _shares(prior), "mode": mode}
    reading = reading_of(domain_col, time_col, group_col, channels, window, step)
    lab = read_and_say(source, domain=source_domain, label_col=label_col, **reading)
    reading = _as_the_source(reading, lab)
    field = {"domain": target_domain, "label_col": label_col, **reading}
    if are_many:
        many = jobs_many.from_recordings(lab, files, field, **how)
        _tell_many(jobs_many.run(many, model, out, say, source_from=source_from, **workers), out)
        return
    how |= {"target_name": target_domain or files[0].stem, "labels": labels or (), "reading": reading}
    job = jobs.from_recordings(lab, read_and_say(files[0], labels_only_score=True, **field), **how)
    _tell(jobs.run(job, model, out, say, source_from=source_from))


def _check_mode(mode: str | None) -> None:
    from transpl.adapter import MODES

    if mode is not None:
        one_of("mode", mode, MODES)


def _files(targets: Sequence[Path], labels: Sequence[Path]) -> tuple[list[Path], bool]:
    """The files to adapt to, and whether they are many, each with a folder of its own, or one."""
    from transpl.many.names import expanded, is_pattern

    files, are_many = expanded(targets), len(targets) > 1 or is_pattern(targets[0])
    if are_many and labels:
        got = f"{len(files)}, or a pattern"
        raise wrong("--labels", expected="one target", got=got, advice="Adapt to this one by itself.")
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
    """Print the scores, where there are any, and where to look."""
    names = {
        "before": "before adaptation",
        "after": "after adaptation",
        "pseudo_labels": "pseudo-labels (windows adapted to)",
    }
    for key, words in names.items():
        found = (outcome.metrics or {}).get(key)
        if found:
            typer.echo(
                f"{words:<34} accuracy {100 * found['accuracy']:5.1f} %   macro-F1 {100 * found['macro_f1']:5.1f}"
                f"   ({found['windows']} windows)"
            )
    given = (outcome.metrics or {}).get("labels_given", 0)
    if given:
        typer.echo(f"the {given} windows that you labelled are not scored")
    typer.echo(f"open {outcome.folder / 'report.html'}")


def _tell_many(table: pd.DataFrame, out: Path) -> None:
    """Print a row per target; some that failed make the exit code 1."""
    from transpl.jobs_many import as_text

    typer.echo(as_text(table))
    say(f"wrote {out / 'summary.csv'}")
    if table["error"].notna().any():
        raise typer.Exit(_FAILED)


def _default_pair(data: Dataset) -> tuple[int, int]:
    return _DEMO_WATCH_PAIR if data.name == "watch" else data.pairs[0]


def _shares(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    from transpl.datasets.tables import as_text

    try:
        return {str(as_text([name])[0]): float(share) for name, share in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise wrong(
            "--prior", expected="class=share pairs, as walk=0.6,sit=0.4", got=repr(text), advice="Mend it."
        ) from None
