"""The pages of the documentation point at code and files that exist."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INCLUDED = re.findall(r"\{literalinclude\} (\S+)\n:pyobject: (\S+)", (DOCS / "paper.md").read_text(encoding="utf-8"))
HISTORY = {"ledger.md", "results.md", "results_intro.md", "beyond.md"}  # may name code that was replaced
PAGES = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))}


def _in_backticks(pattern: str) -> set[str]:
    text = "\n".join(page for name, page in PAGES.items() if name not in HISTORY)
    return set(re.findall(rf"(?<!`)`({pattern})[^`\n]*`", text))


DOTTED = sorted(_in_backticks(r"transpl(?:\.\w+)+"))
PATHS = sorted(_in_backticks(r"(?:src|tests|benchmarks|examples|docs)/[\w./*-]*"))
MODULES = sorted(_in_backticks(r"[a-z_]+/[\w/]+\.py"))
DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto\w+):: (\S+)((?:\n   .+)*)", flags=re.M)


def _documented() -> list[str]:
    """Every name on the page of the Python interface."""
    found, module = [], ""
    for kind, name, options in DIRECTIVE.findall(PAGES["api.md"]):
        if kind == "currentmodule":
            module = f"{name}."
            continue
        full = name if name.startswith("transpl") else module + name
        found += [full, *(f"{full}.{member}" for member in _members(options))]
    return found


def _members(options: str) -> list[str]:
    listed = re.search(r":members: ([\w, \n]+?)(?=\n +:|\Z)", options)
    return re.findall(r"\w+", listed[1]) if listed else []


def test_the_paper_page_shows_code():
    assert len(INCLUDED) > 10


@pytest.mark.parametrize(("path", "name"), INCLUDED)
def test_code_that_the_paper_page_includes_exists(path, name):
    body = ast.parse((DOCS / path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        assert found, f"{path} has no {name}"
        body = found[0].body


@pytest.mark.parametrize("name", sorted({*DOTTED, *_documented()}))
def test_names_resolve(name):
    pkgutil.resolve_name(name)


def test_autodoc_finds_the_members_it_is_told():
    """It looks at `dir`, in which a package has to name what it imports late."""
    for kind, name, options in DIRECTIVE.findall(PAGES["api.md"]):
        if kind == "automodule":
            assert set(_members(options)) <= set(dir(pkgutil.resolve_name(name))), name


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path):
    assert list(ROOT.glob(path.rstrip("/."))), f"{path} does not exist"


@pytest.mark.parametrize("path", MODULES)
def test_modules_exist(path):
    """Pages name them from the root or from the package."""
    assert any((folder / path).is_file() for folder in (ROOT, ROOT / "src" / "transpl")), f"{path} does not exist"


def test_pages_name_code_and_files():
    assert len(DOTTED) > 3
    assert len(PATHS) > 5
    assert len(_documented()) > 100


# links

LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)")
INDENTED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1", flags=re.M | re.S)
LINKS = sorted(
    (name, link)
    for name, page in PAGES.items()
    for link in LINK.findall(INDENTED.sub("", page))
    if not re.match(r"https?:|mailto:", link)
)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub and MyST name them."""
    headings = re.findall(r"^#+ (.*)$", INDENTED.sub("", page.read_text(encoding="utf-8")), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def missing(page: Path, link: str) -> str:
    """What a link from a page points at and is not there; "" if it is."""
    path, _, anchor = link.partition("#")
    target = page if not path else page.parent / path
    if path.startswith("gallery/"):  # made of an example when the pages are built
        return "" if path == "gallery/index" or (ROOT / "examples" / f"{target.name}.py").is_file() else path
    if not target.exists():
        return path
    return anchor if anchor and anchor not in anchors(target) else ""


@pytest.mark.parametrize(("name", "link"), LINKS)
def test_local_links_lead_somewhere(name, link):
    page = ROOT / name if name == "README.md" else DOCS / name
    assert not missing(page.with_name(name.replace("_intro.md", ".md")), link)  # an intro begins the page of its name


def test_every_page_is_in_the_contents():
    contents = re.search(r"```\{toctree\}.*?```", PAGES["index.md"], flags=re.S)[0].split()
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    parts = ("_intro", "_notes")  # of the page of their name
    assert {name for name in pages if not name.endswith(parts)} <= set(contents)


@pytest.mark.parametrize("link", ["nowhere.md", "#no-such-heading", "guide.md#no-such-heading", "gallery/none"])
def test_a_broken_link_is_noticed(link):
    assert missing(DOCS / "index.md", link)


def test_there_are_links_to_check():
    assert len(LINKS) > 80
