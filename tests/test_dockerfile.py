"""The Dockerfile, as far as it can be tested without an engine: what it copies, installs and runs exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from transpl.cli import app

ROOT = Path(__file__).parents[1]
LINES = [
    line.split(maxsplit=1)
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def of(instruction: str) -> list[str]:
    return [rest for name, rest in LINES if name == instruction]


def sent_to_the_engine(name: str) -> bool:
    """Whether .dockerignore lets a file or folder at the top of the tree through; the last rule that fits decides."""
    sent = True
    for rule in (ROOT / ".dockerignore").read_text(encoding="utf-8").split():
        if fnmatch(name, rule.removeprefix("!")):
            sent = rule.startswith("!")
    return sent


def test_what_is_copied_exists_and_is_sent():
    copied = [name for line in of("COPY") for name in line.split()[:-1]]
    assert "src" in copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert sent_to_the_engine(name), name
    assert set(PROJECT["license-files"]) <= set(copied)
    assert PROJECT["readme"] in copied
    for name in (".git", "tests", ".venv", "docs"):
        assert not sent_to_the_engine(name)


def test_extras_that_are_installed_exist_and_are_light():
    (install,) = [line for line in of("RUN") if "pip install" in line]
    extras = re.search(r"'\.\[([\w,]+)\]'", install)[1].split(",")
    assert extras == ["serve"]
    assert set(extras) <= PROJECT["optional-dependencies"].keys()


def test_the_python_is_one_that_the_package_supports():
    (image,) = of("FROM")
    version = re.fullmatch(r"python:(\d\.\d+)-slim", image)[1]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_command_exists_and_does_not_run_as_root():
    names = [name for name, _ in LINES]
    assert names.index("USER") < names.index("CMD")
    assert of("USER") != ["root"]
    words = eval(of("CMD")[0])
    assert words[:3] == ["transpl", "serve", "/model"]
    known = {info.callback.__name__: info.callback for info in app.registered_commands}
    options = {word.removeprefix("--") for word in words if word.startswith("--")}
    assert options <= set(known["serve"].__annotations__)
    assert words[words.index("--port") + 1] == of("EXPOSE")[0]
    assert shlex.split(words[0]) == list(PROJECT["scripts"])
