"""The package as others get it: a wheel that holds every module, typed, light to import."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from test_without_torch import LIGHT

import transpl

ROOT = Path(__file__).parents[1]
MODULES = sorted(module.name for module in pkgutil.walk_packages(transpl.__path__, "transpl."))
BACKENDS = ("dask", "ray")  # each of an extra of its own


def importing(modules: list[str]) -> str:
    """Code that imports modules and prints where the package is."""
    each = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)"
    return f"{each}\nimport transpl; print(transpl.__file__)"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (path,) = out.glob("*.whl")
    return path


def test_wheel_holds_every_module_and_the_type_marker(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "transpl/py.typed" in names
    for module in MODULES:
        stem = module.replace(".", "/")
        assert {f"{stem}.py", f"{stem}/__init__.py"} & names, module
    for path in Path(transpl.__file__).parent.rglob("*.[cj]s*"):
        assert f"transpl/{path.relative_to(Path(transpl.__file__).parent).as_posix()}" in names
    assert not [name for name in names if name.startswith("tests/") or name.endswith(".npz")]


@pytest.mark.slow
def test_wheel_imports_every_module_without_the_source_tree(wheel, tmp_path):
    """Installed beside this environment's dependencies, but not beside this source tree."""
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, timeout=300)
    done = _run_isolated(
        [sys.executable], f"import sys; sys.path.insert(0, {str(target)!r})\n{importing(MODULES)}", tmp_path
    )
    assert Path(done).is_relative_to(target)


@pytest.mark.slow
def test_wheel_in_an_empty_environment_imports_all_that_needs_no_extra(wheel, tmp_path):
    """Nothing but what the wheel itself asks for."""
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *constraints, str(wheel)], check=True, timeout=1800)
    done = _run_isolated([str(python)], importing(LIGHT), tmp_path)
    assert Path(done).is_relative_to(tmp_path / "empty")
    for extra in BACKENDS:
        ask = f"from transpl._utils.parallel import check_workers; check_workers(1, {extra!r}, 0, None)"
        refused = subprocess.run([python, "-I", "-c", ask], capture_output=True, text=True, check=False)
        assert f"transpl[{extra}]" in refused.stderr
    command = [tmp_path / "empty" / "bin" / "transpl", "--version"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert said.stdout.strip() == f"transpl {transpl.__version__}"


def _run_isolated(python: list[str], code: str, folder: Path) -> str:
    done = subprocess.run([*python, "-I", "-c", code], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light():
    code = "import sys, transpl; print(*sorted({'torch', 'sklearn', 'pandas', 'plotly'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_public_names_exist():
    assert set(dir(transpl)) >= {"TransPL", "adapt_many", "datasets", "PseudoLabels", "InputError", "__version__"}
    for name in transpl.__all__:
        assert getattr(transpl, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = transpl.nonsense


def test_version_is_in_the_changelog():
    assert re.search(rf"^## {re.escape(transpl.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)
