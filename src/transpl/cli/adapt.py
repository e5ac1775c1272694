"""The commands that adapt a model: `transpl adapt` and `demo`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import invalid
from transpl._utils.locks import writing
from transpl.cli.command import COUNCIL, FILES, METHOD, NETWORK, RUNNING
from transpl.cli.options import (
    AsJson,
    Device,
    Threads,
    log,
    print_json,
    setting_value,
    split_assignments,
    split_setting,
)
from transpl.cli.reading_options import READ, Reading, read_and_log, read_files

if TYPE_CHECKING:
    from transpl import TransPL
    from transpl.datasets.recordings.reading import Recordings
    from transpl.jobs import JobOutcome

_FAILED = 1
_DEMO_WATCH_PAIR = (8, 4)  # gains much, and the same with every seed; the ten pairs are in docs/beyond.md
# parameters of TransPL whose option has another name
_OPTION_OF = {"random_state": "seed", "max_epochs": "epochs", "n_threads": "threads"}
_OPTION_OF |= dict.fromkeys(("source_lr", "adapt_lr"), "learning_rate")
_NOT_TO_SET = ("checkpoint_dir", "verbose", "channel_names")  # set by the job

Seed = Annotated[int, typer.Option(help="Seed of everything random.", rich_help_panel=METHOD)]
Epochs = Annotated[int, typer.Option(min=1, help="At most so many epochs per phase.", rich_help_panel=NETWORK)]
Mode = Annotated[
    str | None,
    typer.Option(
        help="finetune trains on the pseudo-labels, markov does without a gradient step.",
        show_default="finetune for paper",
        rich_help_panel=NETWORK,
    ),
]
Variant = Annotated[
    str,
    typer.Option(
        help="plus: several cheap witnesses, judged without labels; paper: the paper's, needs torch.",
        rich_help_panel=METHOD,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Other parameters of TransPL, as undo=none,sigma=0.3.",
        callback=split_assignments,
        metavar="NAME=VALUE",
    ),
]
Undo = Annotated[
    str,
    typer.Option(
        help="What may be undone of what the target's sensors suffered: auto, none, or kinds as turn,unit (dead, unit, "
        "turn, mirror, flip, swap, pace).",
        rich_help_panel=COUNCIL,
    ),
]
Triads = Annotated[
    str | None,
    typer.Option(
        help="Channels x y z of one sensor, as 'ax ay az' or 'ax ay az, gx gy gz'.",
        show_default="found by their names",
        rich_help_panel=COUNCIL,
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
        float, typer.Option(help="Of both phases. Higher than the paper's, to be fast.", rich_help_panel=NETWORK)
    ] = 2e-3,
    undo: Undo = "auto",
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads. Another number rounds differently.", rich_help_panel=RUNNING)
    ] = 1,
    device: Device = "auto",
    change: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Adapt from one person to another on real data that pip installs, and write a report to open.

    The scores are printed as they come out, good or bad.
    """
    from transpl import datasets, jobs
    from transpl.datasets.pairs import parse_pair

    model = _new_model(
        ctx,
        change,
        mode,
        variant=variant,
        random_state=seed,
        max_epochs=epochs,
        source_lr=learning_rate,
        adapt_lr=learning_rate,
        n_threads=threads,
        device=device,
        undo=_kinds(undo),
    )
    data = datasets.load(dataset)
    if pair is None:
        source, target = _DEMO_WATCH_PAIR if data.name == "watch" else data.pairs[0]
    else:
        source, target = parse_pair(pair, "--pair")
    job = jobs.from_dataset(data, source, target, mode=mode, all_source=True, hold_out=model.needs_validation)
    log(f"{data.name}: domain {source} (labelled) to domain {target} (labels hidden, used for scoring only)")
    with writing(out):
        _report(jobs.run(job, model, out, log), as_json)


def adapt(
    ctx: typer.Context,
    source: Annotated[
        list[Path],
        typer.Option(
            help="Labelled recordings. May be repeated, a folder or a quoted pattern: one model learns from all."
        ),
    ],
    target: Annotated[
        list[Path],
        typer.Option(
            help="Recordings to adapt to; their labels only score. A folder is one target. May be repeated, or be a "
            "quoted pattern such as 'homes/*.csv': one target each."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for model, predictions, metrics and report.")],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[TARGET]...", help="More of --target.")] = None,
    label_col: Annotated[str | None, typer.Option(help="Column with the class.")] = None,
    source_domain: Annotated[
        str | None, typer.Option(help="Use only these rows of --source.", rich_help_panel=FILES)
    ] = None,
    target_domain: Annotated[
        str | None, typer.Option(help="Use only these rows of --target.", rich_help_panel=FILES)
    ] = None,
    reading: Reading = READ,
    prior: Annotated[
        str | None,
        typer.Option(help="Known class shares of the target, as walk=0.6,sit=0.4.", rich_help_panel=METHOD),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(help="Target windows that you labelled, as `transpl review` lists them. May be repeated."),
    ] = None,
    source_from: Annotated[
        Path | None,
        typer.Option(
            help="Folder of an earlier adapt with the same source, whose source model is not trained again.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    variant: Variant = "plus",
    mode: Mode = None,
    one_label_per_group: Annotated[
        bool,
        typer.Option(
            "--one-label-per-group",
            help="All windows of a recording (--group-col) have the same label.",
            rich_help_panel=COUNCIL,
        ),
    ] = False,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth",
            help="Neighbouring windows of a recording seldom have different labels.",
            rich_help_panel=COUNCIL,
        ),
    ] = False,
    undo: Undo = "auto",
    triads: Triads = None,
    patch_length: Annotated[int, typer.Option(min=1, help="Samples per code.", rich_help_panel=METHOD)] = 8,
    width: Annotated[int, typer.Option(min=8, help="Size of the network, 64 or 128.", rich_help_panel=NETWORK)] = 64,
    sigma: Annotated[float, typer.Option(help="Smaller trusts shifted channels less.", rich_help_panel=METHOD)] = 0.2,
    seed: Seed = 0,
    epochs: Epochs = 200,
    threads: Threads = None,
    device: Device = "auto",
    change: Parameters = None,
    n_jobs: Annotated[
        int,
        typer.Option("--jobs", min=1, help="Of several targets, so many at the same time.", rich_help_panel=RUNNING),
    ] = 1,
    backend: Annotated[
        str,
        typer.Option(help="Where several targets are adapted to: loky, dask, ray, inline.", rich_help_panel=RUNNING),
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(help="Of a running dask or ray cluster.", rich_help_panel=RUNNING)
    ] = None,
    retries: Annotated[
        int,
        typer.Option(min=0, help="Of several targets, how often a failed one is tried again.", rich_help_panel=RUNNING),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Adapt a classifier from labelled recordings to unlabelled ones; go on where an interrupted run stopped.

    Several targets share one source model. Each gets its own folder in --out; one that fails does not stop the others.
    """
    from transpl import jobs
    from transpl._utils.parallel import check_workers
    from transpl.datasets.recordings.several import expand_patterns, files_of, is_pattern

    model = _new_model(
        ctx,
        change,
        mode,
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
    jobs.check_grouping(model, one_label_per_group, smooth)
    paths = [*target, *(more or ())]
    files, are_many = expand_patterns(paths), len(paths) > 1 or is_pattern(paths[0])
    workers: dict[str, Any] = {"jobs": n_jobs, "backend": backend, "retries": retries, "address": address}
    if are_many:
        check_workers(**workers)
        for option, given in (
            ("--labels", labels),
            ("--one-label-per-group", one_label_per_group),
            ("--smooth", smooth),
        ):
            if given:
                got = f"{len(files)}, or a pattern"
                raise invalid(option, expected="one target", got=got, advice="Adapt to each by itself.")
    sources = [file for path in expand_patterns(source, "source") for file in files_of(path)]
    fields: dict[str, Any] = {"source_name": source_domain or ", ".join(path.stem for path in source)}
    fields |= {"prior": _class_shares(prior), "mode": mode, "hold_out": model.needs_validation}
    typed = reading.given()
    lab = read_files(source, sources, domain=source_domain, label_col=label_col, **typed)
    known = _reading_of_targets(typed, lab)
    target_reading = {"domain": target_domain, "label_col": label_col, **known}
    if source_domain == target_domain:
        _note_same_file(sources, [file for path in files for file in files_of(path)])
    if are_many:
        many = jobs.ManyJob.from_recordings(lab, files, target_reading, **fields)
        table = jobs.run_many(many, model, out, log, source_from=source_from, **workers)
        if as_json:
            print_json(json.loads(table.to_json(orient="records")))
        else:
            typer.echo(jobs.table_as_text(table))
        log(f"wrote {out / 'summary.csv'}")
        if table["error"].notna().any():
            raise typer.Exit(_FAILED)
        return
    fields |= {
        "target_name": target_domain or files[0].stem,
        "labels": labels or (),
        "reading": jobs.saved_reading(known),
        "one_label_per_group": one_label_per_group,
        "smooth": smooth,
    }
    job = jobs.from_recordings(lab, read_and_log(files[0], labels_only_score=True, **target_reading), **fields)
    with writing(out):
        _report(jobs.run(job, model, out, log, source_from=source_from), as_json)


def _new_model(ctx: typer.Context, changes: Sequence[str] | None, mode: str | None, **options: Any) -> TransPL:
    """An unfitted model of parameters with an option of their own, and of those that `--set` changes.

    All are checked here, before files are read that may take long.
    """
    from transpl import TransPL
    from transpl.estimator import check_mode

    known = sorted(set(TransPL().get_params()) - set(_NOT_TO_SET))
    found = dict(options)
    for text in changes or ():
        name, value = split_setting(text, "--set")
        if name not in known:
            expected = f"a parameter of TransPL ({', '.join(known)})"
            raise invalid("--set", expected=expected, got=repr(name), advice="Check the spelling.")
        option = _OPTION_OF.get(name, name)
        source = ctx.get_parameter_source(option) if name in options else None
        if source is not None and source.name != "DEFAULT":
            typed = f"--{option.replace('_', '-')}"
            raise invalid(
                "--set", expected=f"no {name} beside {typed}", got=repr(text), advice="Leave out one of them."
            )
        found[name] = setting_value(value)
    model = TransPL(**found, verbose=True).check_parameters()
    check_mode(model.variant, mode)
    return model


def _kinds(undo: str) -> str | tuple[str, ...]:
    """Read kinds of shifts, separated by commas or spaces."""
    kinds = tuple(undo.replace(",", " ").split())
    return kinds[0] if len(kinds) == 1 else kinds


def _triads(text: str | None) -> tuple[tuple[str | int, ...], ...] | None:
    """Read groups of three channels, by name or number; groups are separated by commas."""
    if text is None:
        return None
    return tuple(tuple(int(name) if name.isdigit() else name for name in part.split()) for part in text.split(","))


def _class_shares(text: str | None) -> dict[str, float] | None:
    """Read walk=0.6,sit=0.4."""
    if text is None:
        return None
    from transpl.datasets.recordings.tables import as_text

    try:
        return {str(as_text([name])[0]): float(share) for name, share in (part.split("=") for part in text.split(","))}
    except ValueError:
        expected = "class=share pairs, as walk=0.6,sit=0.4"
        raise invalid("--prior", expected=expected, got=repr(text), advice="Correct it.") from None


def _reading_of_targets(reading: dict[str, Any], source: Recordings) -> dict[str, Any]:
    """How targets and later recordings are read: as asked, and with the source's window, channels and rate."""
    found = {**reading, "window": source.X.shape[2]}  # windows of an npz have their own length
    if source.step is not None:
        found["step"] = source.step
    if source.named:
        found["channels"] = list(source.channel_names)  # other files may have more, or in another order
    if source.interval is not None:
        found["interval"] = source.interval
    return found


def _note_same_file(sources: Sequence[Path], targets: Sequence[Path]) -> None:
    """Say so if a target is a source: its scores are then those of windows that the model was trained on."""
    known = {path.resolve() for path in sources}
    for path in targets:
        if path.resolve() in known:
            log(f"note: {path.name} is both source and target, so that its scores say nothing about other people.")


def _report(outcome: JobOutcome, as_json: bool) -> None:
    """Write the report; print accuracies, what was undone, and where to look."""
    from transpl.jobs.folder import recording_failure
    from transpl.report import write_report

    with recording_failure(outcome.folder):
        write_report(outcome.folder)
    metrics = outcome.metrics or {}
    if as_json:
        notes = {"undone": list(outcome.undone), "warnings": list(outcome.warnings)}
        page = str(outcome.folder / "report.html")
        print_json({"folder": str(outcome.folder), "metrics": metrics, **notes, "report": page})
        return
    estimate = metrics.get("estimated_accuracy")
    if estimate:
        low, high = 100 * estimate["low"], 100 * estimate["high"]
        typer.echo(
            f"{'estimated without labels':<34} accuracy {100 * estimate['accuracy']:5.1f} %"
            f"   (likely between {low:.0f} and {high:.0f} %)"
        )
    for key, title in (
        ("before", "before adaptation"),
        ("after", "after adaptation"),
        ("pseudo_labels", "pseudo-labels (windows adapted to)"),
    ):
        found = metrics.get(key)
        if found and (key != "pseudo_labels" or found != metrics.get("after")):
            typer.echo(
                f"{title:<34} accuracy {100 * found['accuracy']:5.1f} %   macro-F1 {100 * found['macro_f1']:5.1f}"
                f"   ({found['windows']} windows)"
            )
    if given := metrics.get("labels_given"):
        typer.echo(f"the {given} windows that you labelled are not scored")
    for sentence in outcome.warnings:
        typer.echo(f"warning: {sentence}")
    for sentence in outcome.undone or (("Nothing was undone.",) if estimate else ()):
        typer.echo(sentence)
    if outcome.warnings:
        few = outcome.folder / "few.csv"
        typer.echo(f"label some windows and adapt again: transpl review --model {outcome.folder} --out {few}")
    typer.echo(f"open {outcome.folder / 'report.html'}")
