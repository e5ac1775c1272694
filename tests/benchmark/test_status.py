"""How long it will take, and what it is doing."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace

import pytest
from rich.console import Console
from tiny_bench import keep, made_up, plan

from transpl._utils.progress import format_duration
from transpl.benchmark.runner import RunOutcome
from transpl.benchmark.status import (
    ProgressView,
    RunTimings,
    missing_lines,
    show_progress,
    status_lines,
)
from transpl.benchmark.store import Store
from transpl.datasets import make_shifted

DATA = make_shifted(n_train=6, n_test=6, length=32)
SPECS = plan("no-adapt", "softmax", pairs=[(0, 1), (1, 2)]).runs(DATA)


def seconds(adapt, source=0.0):
    return {"source": source, "start": 0.0, "adapt": adapt, "predict": 1.0}


def finished(*times):
    return [(SPECS[0], made_up(SPECS[0], seconds=seconds(adapt, 60.0))) for adapt in times]


def test_a_run_takes_as_long_as_the_median_of_its_like():
    timings = RunTimings(finished(1.0, 3.0, 100.0))
    assert timings.seconds(SPECS[1]) == 4.0
    assert timings.seconds(SPECS[2]) is None, "another method"
    assert timings.seconds(replace(SPECS[1], dataset="other")) is None
    assert timings.seconds(replace(SPECS[1], goal="label")) is None


def test_runs_with_the_same_settings_are_judged_by_before_others():
    longer = replace(SPECS[0], settings={**SPECS[0].settings, "max_epochs": 200})
    timings = RunTimings([*finished(1.0), (longer, made_up(longer, seconds=seconds(499.0)))])
    assert timings.seconds(SPECS[1]) == 2.0
    assert timings.seconds(longer) == 500.0
    assert timings.seconds(replace(longer, settings={})) == pytest.approx(251.0), "unknown settings: all of the method"


def test_source_models_are_counted_once_each_and_work_is_shared():
    timings = RunTimings(finished(4.0))
    assert timings.total(SPECS[:2], jobs=1) == (5.0 + 5.0 + 2 * 60.0, 0)
    assert timings.total(SPECS[:2], jobs=2) == (65.0, 0)
    assert timings.total(SPECS, jobs=1) == (130.0, 2)
    assert RunTimings([]).total(SPECS, jobs=1) == (0.0, 4)


@pytest.mark.parametrize(
    ("time", "words"), [(4.4, "4 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_times_in_words(time, words):
    assert format_duration(time) == words


# Lists


def test_what_is_missing_and_how_long_it_takes(tmp_path):
    store = Store(tmp_path)
    keep(store, SPECS[0], seconds=seconds(4.0, 60.0))
    assert list(missing_lines(store, SPECS, 1)) == [
        "small 1-2 no-adapt seed 0  5 s",
        "small 0-1 softmax seed 0  ?",
        "small 1-2 softmax seed 0  ?",
        "4 runs: 1 finished, 3 missing, 0 of them failed; about 2 min, and 2 runs of unknown length",
    ]


def test_what_is_complete(tmp_path):
    store = Store(tmp_path)
    for spec in SPECS[:3]:
        keep(store, spec)
    store.fail(SPECS[3], "RuntimeError: no", "", 2)
    assert list(status_lines(store, SPECS, 1)) == [
        "small        no-adapt           2 of 2  complete",
        "small        softmax            1 of 2",
        "failed: small 1-2 softmax seed 0: RuntimeError: no",
        "4 runs: 3 finished, 1 missing, 1 of them failed; about 15 s",
    ]
    keep(store, SPECS[3])
    assert list(status_lines(store, SPECS, 1))[-1] == "4 runs: 4 finished, 0 missing, 0 of them failed"


def test_a_first_run_of_unknown_length_is_not_said_to_take_no_time(tmp_path):
    assert list(missing_lines(Store(tmp_path), SPECS, 1))[-1].endswith("no estimate of the time yet")


# Live


BRACKETS = "NotReadable: [/a/x] is not [bold]markup[/bold]"


def ends():
    yield RunOutcome(SPECS[0], made_up(SPECS[0], 0.875))
    yield RunOutcome(SPECS[1], None, BRACKETS)
    yield RunOutcome(replace(SPECS[2], goal="label"), made_up(replace(SPECS[2], goal="label"), 0.5))


def specs():
    return [*SPECS[:2], replace(SPECS[2], goal="label"), SPECS[3]]


def test_a_log_has_one_line_per_run(tmp_path, capsys):
    assert [done.spec for done in show_progress(ends(), specs(), tmp_path, 1)] == specs()[:3]
    assert capsys.readouterr().err.splitlines() == [
        "small 0-1 no-adapt seed 0: accuracy 87.5",
        f"small 1-2 no-adapt seed 0: failed: {BRACKETS}",
        "small 0-1 softmax seed 0 (labels only): label accuracy 12.5",
    ]


def test_a_terminal_has_a_table_and_keeps_what_failed(tmp_path):
    screen = Console(file=io.StringIO(), force_terminal=True, width=150)
    assert len(list(show_progress(ends(), specs(), tmp_path, 2, screen))) == 3
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.file.getvalue())
    assert "transpl bench" in shown
    assert f"small 1-2 no-adapt seed 0: failed: {BRACKETS}" in shown


def test_the_table_counts_done_running_failed_and_left(tmp_path):
    store = Store(tmp_path)
    keep(store, SPECS[0], seconds=seconds(29.0))
    view = ProgressView(SPECS, tmp_path, jobs=2)
    assert counts(view)[:4] == ["1/4", "2", "0", "3"]
    assert counts(view)[5] == "?"
    view.add(RunOutcome(SPECS[1], None, BRACKETS))
    assert counts(view)[:4] == ["1/4", "2", "1", "2"]
    view.add(RunOutcome(SPECS[2], made_up(SPECS[2])))
    assert counts(view)[:4] == ["2/4", "1", "1", "1"]
    assert counts(view)[5] != "?"


def test_before_the_first_run_former_ones_tell_the_time_left(tmp_path):
    keep(Store(tmp_path), SPECS[0], seconds=seconds(29.0))
    view = ProgressView(SPECS[:2], tmp_path, jobs=1)
    view.start = time.monotonic() - 20
    assert counts(view)[4:] in (["20 s", "10 s"], ["21 s", "9 s"])


def counts(view):
    return [next(iter(column.cells)) for column in view.table().columns]
