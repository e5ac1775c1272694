"""Tasks side by side: the same results on every back end, and nobody is drawn into another's death."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from conftest import refusal
from tasks_to_run import count_to, do, do_raise

from transpl._utils.parallel import BACKENDS, TaskOutcome, run_all

IN_PROCESSES = ("loky", "dask", "ray")
WITH_CLUSTER = ("dask", "ray")
SCRIPT = """
import time
from transpl._utils.parallel import run_all

def nap(seconds):
    time.sleep(seconds)

if __name__ == "__main__":
    for outcome in run_all(nap, [0, 600, 600], jobs=2, backend={backend!r}):
        print("ready", flush=True)
        time.sleep({consumer})
"""


def harmless_tasks(folder):
    return {
        **{f"count {n}": ("count", n) for n in range(5)},
        "raises": ("raise", "two\nlines"),
        "raises once": ("raise_once", str(folder / "raised")),
        "leaves": ("leave", 7),
        "returns a lock": ("lock", None),
    }


def deadly_tasks(folder):
    return {"killed once": ("be_killed_once", str(folder / "killed")), "vanishes": ("vanish", 3)}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home folder to look into afterwards."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def temporary():
    """The folder for temporary files, to look into afterwards; ray needs a short path."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", folder)
        patch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.fixture(scope="module")
def outcomes_of(tmp_path_factory, home, temporary):
    """What each back end made of all kinds of tasks; each is started once."""
    known = {}

    def outcomes_of(backend):
        if backend not in known:
            folder = tmp_path_factory.mktemp(backend)
            tasks = harmless_tasks(folder)
            if backend != "inline":
                tasks = {**deadly_tasks(folder), "threads": ("threads", None), **tasks}
            found = list(run_all(do, tasks, jobs=2, backend=backend))
            assert sorted(outcome.key for outcome in found) == sorted(tasks)
            known[backend] = {outcome.key: outcome for outcome in found}
        return known[backend]

    return outcomes_of


def ray_is_slow(backends):
    return [pytest.param(name, marks=pytest.mark.slow) if name == "ray" else name for name in backends]


@pytest.fixture(params=ray_is_slow(BACKENDS))
def outcomes(request, outcomes_of):
    return outcomes_of(request.param)


@pytest.fixture(params=ray_is_slow(IN_PROCESSES))
def process_outcomes(request, outcomes_of):
    return outcomes_of(request.param)


def test_every_back_end_gives_the_same_values(outcomes):
    for n in range(5):
        assert outcomes[f"count {n}"] == TaskOutcome(f"count {n}", count_to(n), None, None, 1)


def test_an_exception_costs_its_task_only_and_keeps_its_traceback(outcomes):
    raised = outcomes["raises"]
    assert (raised.value, raised.error, raised.attempts) == (None, "ValueError: two lines", 2)
    assert "in do_raise" in raised.traceback
    assert outcomes["leaves"].error == "SystemExit: 7"


def test_a_value_that_does_not_pickle_costs_its_task_only(outcomes):
    assert "pickle" in outcomes["returns a lock"].error


def test_what_fails_once_is_tried_again(outcomes):
    assert outcomes["raises once"] == TaskOutcome("raises once", "second time", None, None, 2)


def test_a_killed_worker_costs_its_task_one_attempt(process_outcomes):
    assert process_outcomes["killed once"] == TaskOutcome("killed once", "survived", None, None, 2)


def test_a_task_that_always_kills_its_worker_fails_alone(process_outcomes):
    dead = process_outcomes["vanishes"]
    assert dead.error.startswith("worker died (")
    assert (dead.value, dead.traceback, dead.attempts) == (None, None, 2)


def test_no_other_task_is_charged_for_a_death(process_outcomes):
    assert {process_outcomes[f"count {n}"].attempts for n in range(5)} == {1}


def test_a_worker_uses_one_thread(process_outcomes):
    assert process_outcomes["threads"].value == {"torch": 1, "most": 1, "variable": "1"}


def test_loky_says_how_a_worker_died(outcomes_of):
    assert "EXIT(3)" in outcomes_of("loky")["vanishes"].error


def test_nothing_is_left_in_home_or_temporary_folder(process_outcomes, home, temporary):
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


def outcomes_beside_a_long_task(folder, task):
    """What comes of "short" and of "long", which ends only once an outcome has come out."""
    marker = folder / "an outcome has come out"
    for outcome in run_all(do, {"long": ("wait_for", str(marker)), "short": task}, jobs=2):
        marker.touch()
        yield outcome


def test_a_long_task_survives_a_neighbour_that_dies_twice(tmp_path):
    deadly, long = outcomes_beside_a_long_task(tmp_path, ("be_killed", None))
    assert (deadly.key, deadly.value, deadly.attempts) == ("short", None, 2)
    assert "SIGKILL" in deadly.error
    assert long == TaskOutcome("long", "waited", None, None, 1)


def test_outcomes_come_as_they_are_ready(tmp_path):
    found = outcomes_beside_a_long_task(tmp_path, ("count", 3))
    assert [outcome.key for outcome in found] == ["short", "long"]


def test_one_job_runs_in_a_process_of_its_own():
    (outcome,) = run_all(lambda _: os.getpid(), [None])
    assert outcome.value != os.getpid()


def test_inline_runs_here():
    (outcome,) = run_all(lambda _: os.getpid(), [None], backend="inline")
    assert outcome.value == os.getpid()


def test_a_sequence_is_named_by_its_numbers():
    found = {outcome.key: outcome.value for outcome in run_all(len, ["a", "bc"], backend="inline")}
    assert found == {"0": 1, "1": 2}


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_tasks_no_outcomes(backend):
    assert list(run_all(len, {}, backend=backend)) == []


def test_a_task_that_does_not_pickle_is_reported_and_the_others_run():
    found = list(run_all(len, {"lock": [threading.Lock()], "word": "word"}, backend="inline"))
    assert [(outcome.key, outcome.value, outcome.attempts) for outcome in found] == [("lock", None, 0), ("word", 4, 1)]
    assert "pickle" in found[0].error


def test_without_retries_there_is_one_attempt():
    (outcome,) = run_all(do_raise, ["no"], backend="inline", retries=0)
    assert outcome.attempts == 1


def test_leaving_the_loop_kills_the_workers():
    outcomes = run_all(time.sleep, [0, 600, 600], jobs=2)
    next(outcomes)
    workers = workers_of(os.getpid())
    assert len(workers) == 2
    outcomes.close()
    assert not any(worker.is_running() for worker in workers)


def test_a_worker_that_dies_while_it_has_nothing_to_do_costs_nothing():
    of_others = workers_of(os.getpid())  # another test may have left a pool behind
    outcomes = run_all(len, ["one", "three"])
    assert next(outcomes).value == 3
    (worker,) = set(workers_of(os.getpid())).difference(of_others)
    worker.kill()
    time.sleep(1)  # until loky has noticed
    assert next(outcomes) == TaskOutcome("1", 5, None, None, 1)
    outcomes.close()


def test_a_worker_that_grows_is_kept():
    outcomes = list(run_all(do, [("grow", 400)] * 3))
    assert len({outcome.value for outcome in outcomes}) == 1
    assert all(outcome.error is None for outcome in outcomes)


def test_a_death_is_noticed_and_ends_the_children_of_the_worker(tmp_path):
    (outcome,) = run_all(do, [("leave_a_child_behind", str(tmp_path / "pid"))], retries=0)
    assert "EXIT(3)" in outcome.error
    child = int((tmp_path / "pid").read_text())
    if psutil.pid_exists(child):
        psutil.wait_procs([psutil.Process(child)], timeout=10)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_one_thread_is_given_back():
    import torch

    torch.set_num_threads(2)
    try:
        (outcome,) = run_all(lambda _: torch.get_num_threads(), [None], backend="inline")
        assert outcome.value == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_a_value_that_cannot_be_unpickled_is_an_error():
    (outcome,) = run_all(do, [("unreadable", None)], backend="inline", retries=0)
    assert (outcome.value, outcome.error) == (None, "ValueError: cannot be read")


# Ctrl-C and kill -9


def workers_of(pid):
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]


def start_script(folder, backend, consumer=0):
    script = folder / f"naps_on_{backend}.py"
    script.write_text(SCRIPT.format(backend=backend, consumer=consumer))
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "HOME": str(folder)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, str(script)],
        text=True,
        env=environment,
        start_new_session=True,
        preexec_fn=_listen_to_ctrl_c,
        **pipes,
    )


def _listen_to_ctrl_c():
    """Whoever started us in the background may have told us to ignore it, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_until_ready(process):
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return workers_of(process.pid)


def assert_gone(workers):
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []


@pytest.mark.parametrize(
    "backend", ["loky", pytest.param("dask", marks=pytest.mark.slow), pytest.param("ray", marks=pytest.mark.slow)]
)
def test_ctrl_c_ends_the_workers(tmp_path, backend):
    process = start_script(tmp_path, backend)
    workers = wait_until_ready(process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.endswith("KeyboardInterrupt\n")
    assert process.returncode != 0
    assert_gone(workers)


def test_ctrl_c_outside_the_loop_ends_the_workers(tmp_path):
    process = start_script(tmp_path, "loky", consumer=600)
    workers = wait_until_ready(process)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert_gone(workers)


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = start_script(tmp_path, "loky")
    workers = wait_until_ready(process)
    process.kill()
    process.communicate(timeout=60)
    assert_gone(workers)


# Refusals


def test_an_unknown_back_end_is_refused():
    with refusal("backend", "'loky', 'dask', 'ray', 'inline'"):
        run_all(len, ["a"], backend="threads")


@pytest.mark.parametrize(("name", "value"), [("jobs", 0), ("jobs", 1.5), ("retries", -1)])
def test_numbers_are_checked(name, value):
    with refusal(name):
        run_all(len, ["a"], **{name: value})


def test_a_function_that_does_not_pickle_is_refused():
    lock = threading.Lock()
    with refusal("function", "pickle"):
        run_all(lambda _: lock, ["a"])


@pytest.mark.parametrize("backend", WITH_CLUSTER)
def test_a_missing_package_is_named_with_the_command_that_installs_it(backend, monkeypatch):
    monkeypatch.setitem(sys.modules, backend, None)
    with refusal("backend", rf"pip install 'transpl\[{backend}\]'"):
        run_all(len, ["a"], backend=backend)


@pytest.mark.parametrize("backend", ["loky", "inline"])
def test_an_address_is_for_clusters(backend):
    with refusal("address", "Leave it out"):
        run_all(len, ["a"], backend=backend, address="localhost:1")


@pytest.mark.parametrize("backend", WITH_CLUSTER)
@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:many"])
def test_an_address_where_nobody_listens_is_refused(backend, address):
    with refusal("address", "running cluster"):
        list(run_all(len, ["a"], backend=backend, address=address))


# Clusters that run already


def test_a_dask_cluster_is_used_and_left_running(tmp_path):
    from dask import config
    from distributed import LocalCluster

    with (
        config.set({"temporary-directory": str(tmp_path)}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
    ):
        tasks = {"good": ("count", 3), "dead": ("vanish", 1)}
        found = list(run_all(do, tasks, jobs=2, backend="dask", address=cluster.scheduler_address, retries=0))
        assert {outcome.key: outcome.error is None for outcome in found} == {"good": True, "dead": False}
        assert cluster.status.name == "running"
