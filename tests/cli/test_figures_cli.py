"""`transpl figure` on the folder of a job."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from conftest import TINY

from transpl import TransPL, cli, jobs
from transpl.datasets import make_shifted
from transpl.report.figures.from_results import FIGURES, RunChoice, load_subjects
from transpl.windows import name_channels

DATA = make_shifted(n_train=24, n_test=12, length=32, n_channels=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures") / "my job"
    model = TransPL(**{**TINY, "max_epochs": 2})
    jobs.run(jobs.from_dataset(DATA, 0, 1, mode="markov"), model, out)
    return out


def figure(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["transpl", "figure", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0), capsys.readouterr()


OPTIONS = {
    "entropy": ("--order", 2, "--context", "source"),
    "codes": ("--context", "alone"),
    "likelihoods": ("--window", 5, "--channel", 1),
    "alignment": (),
    "corruption": ("--noise", "0,1", "--noise-seeds", 1),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_job_folder_has_every_figure(folder, monkeypatch, capsys, name):
    code, said = figure(monkeypatch, capsys, name, folder, *OPTIONS[name])
    assert code == 0, said.err
    *findings, last = said.out.splitlines()
    assert findings
    assert last == f"open {folder / 'figures' / f'{name}.html'}"
    data = json.loads((folder / "figures" / f"{name}.json").read_text())
    assert findings[0].split(" ")[0] in (folder / "figures" / f"{name}.html").read_text()
    if name == "likelihoods":
        assert (data["window"], data["channel"]) == (5, "channel_1")


def test_what_is_to_be_seen_as_json(folder, monkeypatch, capsys):
    code, said = figure(monkeypatch, capsys, "alignment", folder, "--json")
    assert code == 0, said.err
    found = json.loads(said.out)
    assert found["findings"]
    assert found["page"] == str(folder / "figures" / "alignment.html")


def one_line_error(said):
    (line,) = said.err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nothing", "."), "error: name: expected one of 'entropy'"),
        (("codes", "--window", "3"), "error: window: "),
        (("alignment", "--order", "3"), "error: order: expected none"),
        (("likelihoods", "--window", "99"), "error: window: "),
        (("likelihoods", "--channel", "nose"), "error: channel: "),
        (("corruption", "--channel", "6"), "error: channel: "),
        (("corruption", "--noise", "much"), "error: --noise: "),
        (("entropy", "--context", "here"), "error: context: "),
        (("entropy", "--order", "6"), "error: x: expected a series of at least 6"),
        (("codes", "--pairs", "0-1"), "error: choice: "),
        (("codes", "--set", "width"), "error: --set: "),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(folder, monkeypatch, capsys, words, complaint):
    name, *options = words
    code, said = figure(monkeypatch, capsys, name, *([folder] if options != ["."] else []), *options)
    assert code == 2
    assert one_line_error(said).startswith(complaint)


def test_without_the_sample_codes_are_drawn_and_windows_are_missed(folder, tmp_path, monkeypatch, capsys):
    shutil.copytree(folder / "model", tmp_path / "model")
    assert figure(monkeypatch, capsys, "codes", tmp_path)[0] == 0
    code, said = figure(monkeypatch, capsys, "alignment", tmp_path)
    assert code == 2
    assert "no sample.npz. Run transpl adapt or demo again." in one_line_error(said)


def test_channels_without_names_are_called_as_everywhere(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    (found,) = load_subjects(tmp_path, RunChoice(), FIGURES["codes"])
    assert found.channel_names == name_channels(None, len(found.channel_names))


def test_a_folder_of_something_else_is_refused(tmp_path, monkeypatch, capsys):
    code, said = figure(monkeypatch, capsys, "codes", tmp_path)
    assert code == 2
    assert "neither a benchmark nor a model" in one_line_error(said)


def test_help_names_the_figures(monkeypatch, capsys):
    code, said = figure(monkeypatch, capsys, "--help")
    assert code == 0
    for name in OPTIONS:
        assert name in said.out
