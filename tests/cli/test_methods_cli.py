"""`transpl methods`, as a person types it."""

from __future__ import annotations

import json

import pytest
from command_line import transpl

from transpl.methods import registry
from transpl.methods.registry import entry, names


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_the_list_has_a_row_per_method(monkeypatch, capsys):
    assert transpl(monkeypatch, "methods") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "family", "needs", "reference"]
    assert [row.split()[0] for row in rows] == list(names())
    (row,) = [row for row in rows if row.startswith("deepcoral ")]
    assert "alignment" in row
    assert "Sun and Saenko 2016" in row


def test_in_a_narrow_terminal_a_method_is_still_one_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert transpl(monkeypatch, "methods") == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(names())
    assert max(map(len, rows)) <= 80


def test_one_method_with_settings_and_presets(monkeypatch, capsys):
    assert transpl(monkeypatch, "methods", "deepcoral") == 0
    said = capsys.readouterr().out
    assert said.startswith(f"deepcoral: {entry('deepcoral').summary}")
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert rows["coral_form"].split()[1] == "'published'"
    assert "covariances" in rows["coral_form"]
    assert "time steps per code" in rows["patch_length"]
    assert "coral_weight=4.23" in said


def test_json_for_machines(monkeypatch, capsys):
    assert transpl(monkeypatch, "methods", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == list(names())
    assert transpl(monkeypatch, "methods", "deepcoral", "--json") == 0
    one = json.loads(capsys.readouterr().out)
    assert one == next(each for each in found if each["name"] == "deepcoral")
    assert one["presets"]["adatime"]["wisdm"]["coral_weight"] == 6.488
    assert one["presets"]["paper"]["wisdm"] == {"width": 128, "source_lr": 2e-4, "adapt_lr": 5e-4}
    defaults = {setting["name"]: setting["default"] for setting in one["settings"]}
    assert defaults["coral_weight"] == 1.0


def test_an_unknown_name_gets_one_line(monkeypatch, capsys):
    assert transpl(monkeypatch, "methods", "magic") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: method: expected one of no-adapt, ")
    assert len(said.splitlines()) == 1


OWN = """
from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import register


@register("mine", family="own", needs="source", reference="me")
class Mine(NoAdapt):
    \"\"\"Does what I want.\"\"\"
"""


def test_a_method_from_a_file_is_listed_and_shown(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(registry, "_entries", dict(registry.entries()))
    (tmp_path / "mine.py").write_text(OWN)
    assert transpl(monkeypatch, "methods", "--import", tmp_path / "mine.py") == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["mine", "own", "source", "me"]
    assert transpl(monkeypatch, "methods", "mine", "--import", tmp_path / "mine.py") == 0
    assert capsys.readouterr().out.startswith("mine: Does what I want.")
