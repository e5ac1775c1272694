"""The front door for people who type commands. Thin: parses, calls, prints.

Progress and notes go to stderr, results to stdout or files; the exit code is 0 only if all of it worked.
Heavy imports wait inside the commands, so that `transpl --help` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl.bench_cli import bench, table
from transpl.cli_ending import run_and_exit
from transpl.cli_options import (
    Columns,
    Device,
    DomainColumn,
    GroupColumn,
    OnlyDomain,
    Step,
    Threads,
    TimeColumn,
    Window,
    model_and_reader,
    open_model,
    read_and_say,
    refuse_to_replace,
)
from transpl.cli_options import reading_of as _reading
from transpl.cli_options import say as _say
from transpl.datasets_cli import app as datasets_app
from transpl.errors import wrong
from transpl.figures_cli import figure
from transpl.methods_cli import methods
from transpl.monitor_cli import monitor
from transpl.review_cli import review

if TYPE_CHECKING:
    from transpl.jobs import Outcome

_FAILED = 1
_DEMO_WATCH_PAIR = (3, 9)
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Adapt a time-series classifier to a new user, device or patient without new labels, and see what shifted.",
)
app.add_typer(datasets_app, name="datasets")
app.command(epilog="Example: `transpl bench --dataset ucihar --methods all --seeds 3 --jobs 2`")(bench)
app.command(epilog="Example: `transpl table transpl-bench --which full --statistics`")(table)

Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Epochs = Annotated[int, typer.Option(min=1, help="At most so many epochs per phase.")]
Mode = Annotated[
    str | None,
    typer.Option(
        help="finetune: train on the pseudo-labels; markov: no gradient step.", show_default="markov for plus"
    ),
]
Variant = Annotated[str, typer.Option(help="paper, or plus: what was found to label better, see docs/beyond.md.")]


@app.command(epilog="Example: `transpl demo --out transpl-demo`")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("transpl-demo"),
    dataset: Annotated[str, typer.Option(help="watch, synthetic, or a prepared set in $TRANSPL_DATA.")] = "watch",
    pair: Annotated[
        str | None,
        typer.Option(help="Source and target domain, as 2-7. Default: 3-9 of watch, the first pair of others."),
    ] = None,
    variant: Variant = "plus",
    mode: Mode = None,
    seed: Seed = 0,
    epochs: Epochs = 40,
    learning_rate: Annotated[float, typer.Option(help="Of both phases. Higher than the paper's, to be fast.")] = 2e-3,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads. Another number rounds differently.")] = 1,
    device: Device = "auto",
) -> None:
    """Adapt from one person to another on real data that pip installs, and write a report to open.

    The scores are printed as they come out, good or bad.
    """
    from transpl import TransPL, datasets, jobs

    data = datasets.load(dataset)
    source, target = _pair(pair, data)
    job = jobs.from_dataset(data, source, target, mode=mode, all_source=True)
    _say(f"{data.name}: domain {source} (labelled) to domain {target} (labels hidden, used for scoring only)")
    model = TransPL(
        variant=variant,
        random_state=seed,
        max_epochs=epochs,
        source_lr=learning_rate,
        adapt_lr=learning_rate,
        n_threads=threads,
        device=device,
        verbose=True,
    )
    _tell(jobs.run(job, model, out, _say))


@app.command(
    epilog="Example: `transpl adapt --source lab.csv --target home.csv --label-col activity --time-col t --out results`"
)
def adapt(
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
    from transpl.many.names import expanded, is_pattern

    given = [*target, *(more or ())]
    files = expanded(given)
    reading = _reading(domain_col, time_col, group_col, channels, window, step)
    lab = read_and_say(source, domain=source_domain, label_col=label_col, **reading)
    if lab.named:
        reading["channels"] = list(lab.channel_names)  # other files may hold more, or in another order
    reading["window"] = lab.X.shape[2]  # those of an npz are as long as they are
    if lab.interval is not None:
        reading["interval"] = lab.interval
    how = {"source_name": source_domain or source.stem, "prior": _shares(prior), "mode": mode}
    model = TransPL(
        variant=variant,
        random_state=seed,
        max_epochs=epochs,
        n_threads=threads,
        device=device,
        patch_length=patch_length,
        width=width,
        sigma=sigma,
        verbose=True,
    )
    if len(given) > 1 or is_pattern(given[0]):
        if labels:
            got = f"{len(files)}, or a pattern"
            raise wrong("--labels", expected="one target", got=got, advice="Adapt to this one by itself.")
        many = jobs_many.from_recordings(
            lab, files, {"domain": target_domain, "label_col": label_col, **reading}, **how
        )
        workers: dict[str, Any] = {"jobs": n_jobs, "backend": backend, "retries": retries, "address": address}
        table = jobs_many.run(many, model, out, _say, source_from=source_from, **workers)
        _tell_many(table, out)
        return
    field = read_and_say(files[0], domain=target_domain, labels_only_score=True, label_col=label_col, **reading)
    job = jobs.from_recordings(
        lab, field, target_name=target_domain or files[0].stem, labels=labels or (), reading=reading, **how
    )
    outcome = jobs.run(job, model, out, _say, source_from=source_from)
    _tell(outcome)


@app.command(epilog="Example: `transpl predict --model results --input new.csv > labels.csv`")
def predict(
    model: Annotated[Path, typer.Option(help="Folder written by adapt or demo, or by TransPL.save.")],
    input: Annotated[Path, typer.Option(help="Recordings: npz, csv or parquet.")],
    out: Annotated[Path | None, typer.Option(help="File for the table. Default: stdout.")] = None,
    domain_col: DomainColumn = None,
    domain: OnlyDomain = None,
    time_col: TimeColumn = None,
    group_col: GroupColumn = None,
    channels: Columns = None,
    window: Window = None,
    step: Step = None,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """Label new recordings: one csv row per window with label, confidence and a probability per class."""
    from transpl.results import predictions_table, where, write_table

    refuse_to_replace([input], out)
    fitted, read = model_and_reader(model, threads, device, domain_col, time_col, group_col, channels, window, step)
    recordings = read(input, domain=domain)
    table = predictions_table(fitted, recordings.X, where(recordings))
    if out is None:
        table.to_csv(sys.stdout, index=False)
    else:
        write_table(out, table)
        _say(f"wrote {out}")


@app.command(epilog="Example: `transpl label results windows.npy --adapt --out labels`")
def label(
    model: Annotated[Path, typer.Argument(help="Folder written by adapt or demo, or by TransPL.save.")],
    windows: Annotated[Path, typer.Argument(help="Windows (n, channels, time) as numpy.save wrote them; any n.")],
    out: Annotated[Path, typer.Option(help="Folder for labels.npy, probabilities.npy and classes.json.")],
    adapt: Annotated[bool, typer.Option("--adapt", help="Count the windows as a new target domain first.")] = False,
    chunk: Annotated[int, typer.Option(min=1, help="Windows in memory at once.")] = 4096,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """Label a .npy file of windows that need not fit in memory; go on where an interrupted run stopped."""
    from transpl.streaming import label_windows

    fitted, _ = open_model(model, threads, device)
    found = label_windows(fitted, windows, out, adapt=adapt, chunk=chunk, progress=True)
    for name, count in zip(found.classes, found.windows_per_class(), strict=True):
        typer.echo(f"{name:<30} {count:12,} windows   {count / len(found.labels):6.1%}")
    typer.echo(f"wrote {found.folder / 'labels.npy'}, probabilities.npy and classes.json")


@app.command(epilog="Example: `transpl report results`")
def report(folder: Annotated[Path, typer.Argument(help="Folder written by adapt, demo or bench.")]) -> None:
    """Write report.html from saved results: of an adaptation, or a benchmark's leaderboard, finished or not."""
    from transpl.report import write_report

    if not any((folder / name).is_dir() for name in ("runs", "plans")):
        typer.echo(write_report(folder))
        return
    from transpl.benchmark.leaderboard import leaderboard_from
    from transpl.report.leaderboard import write_leaderboard

    typer.echo(write_leaderboard(leaderboard_from(folder), folder))


app.command(epilog="Example: `transpl figure corruption transpl-bench --dataset ucihar`")(figure)
app.command(epilog="Example: `transpl methods deepcoral`")(methods)
app.command(epilog="Example: `transpl monitor --model results --input today.csv --json`")(monitor)
app.command(epilog="Example: `transpl review --model results --n 20 --out few.csv`")(review)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False) -> None:
    if version:
        from transpl import __version__

        typer.echo(f"transpl {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what went wrong is said in one line."""
    run_and_exit(lambda: app(standalone_mode=False))


def _tell(outcome: Outcome) -> None:
    """Print the scores, where there are any, and where to look."""
    names = {
        "before": "before adaptation",
        "after": "after adaptation",
        "pseudo_labels": "pseudo-labels (target train)",
    }
    for key, words in names.items():
        found = (outcome.metrics or {}).get(key)
        if found:
            typer.echo(
                f"{words:<30} accuracy {100 * found['accuracy']:5.1f} %   macro-F1 {100 * found['macro_f1']:5.1f}"
                f"   ({found['windows']} windows)"
            )
    given = (outcome.metrics or {}).get("labels_given", 0)
    if given:
        typer.echo(f"the {given} windows that you labelled are not scored")
    typer.echo(f"open {outcome.folder / 'report.html'}")


def _tell_many(table: Any, out: Path) -> None:
    """Print a row per target; some that failed make the exit code 1."""
    from transpl.jobs_many import as_text

    typer.echo(as_text(table))
    _say(f"wrote {out / 'summary.csv'}")
    if table["error"].notna().any():
        raise typer.Exit(_FAILED)


def _pair(text: str | None, data: Any) -> tuple[int, int]:
    if text is None:
        return _DEMO_WATCH_PAIR if data.name == "watch" else data.pairs[0]
    try:
        source, target = (int(part) for part in text.split("-"))
    except ValueError:
        raise wrong("--pair", expected="two domain numbers, as 2-7", got=repr(text), advice="See the docs.") from None
    return source, target


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


if __name__ == "__main__":
    main()
