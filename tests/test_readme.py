"""What the README says works: its code blocks are executed."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from command_line import FAST, transpl, walk

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.M | re.S)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    before, after = re.match(r"before (0\.\d+)\nafter  (0\.\d+)\nestimated 0\.\d\d", capsys.readouterr().out).groups()
    assert float(after) > float(before)


def test_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_commands_of_the_readme_run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, person in (("lab", 0), ("home", 1), ("new", 2)):
        walk(person, 1.0 + person / 2).to_csv(f"{name}.csv", index=False)
    commands = [line for line in "\n".join(blocks("sh")).splitlines() if line.startswith("transpl ")]
    assert [command.split()[1] for command in commands] == ["check", "adapt", "predict"]
    for command in commands:
        words, _, stdout = command.partition(" > ")
        quick = FAST if " adapt " in words else []
        assert transpl(monkeypatch, *shlex.split(words)[1:], *quick) == 0, command
        said = capsys.readouterr().out
        assert not stdout or said.startswith("window,")
    assert {path.name for path in Path("results").iterdir()} >= {
        "predictions.csv",
        "model",
        "report.html",
        "metrics.json",
    }


def test_links_of_the_readme_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_readme_names_the_python_that_the_package_needs():
    assert "Python 3.11" in README
    assert sys.version_info >= (3, 11)
