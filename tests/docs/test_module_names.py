"""Modules and folders that the pages name exist, so that no page describes a house of the past."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "decisions").glob("*.md"),
    ]
)
PACKAGES = ("benchmarks", "examples", "pyspark_txnctl", "scale", "storage", "tests", "txnctl")
MODULES = {
    path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}
FOLDER = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:/[a-z_]+)*/?")
OUTSIDE = frozenset({"largest.py"})
"""Programs that the examples of a page write."""


def code_spans(page: Path) -> list[str]:
    """Each piece of inline code, without the blocks between fences."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


def is_module(name: str) -> bool:
    """True for a path from the root, and for the last parts of one: `next_messages.py`, `dispatch/next_messages.py`."""
    return name in MODULES or any(module.endswith(f"/{name}") for module in MODULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_modules_exist(page: Path) -> None:
    """Every `name.py` of a page is a module of the tree."""
    named = {span for span in code_spans(page) if re.fullmatch(r"[\w/]+\.py", span)}
    assert not {name for name in named - OUTSIDE if not is_module(name)}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CLI.md"], ids=lambda page: page.name
)
def test_named_folders_exist(page: Path) -> None:
    """Every folder of a package that a page names is in the tree; CLI.md names the folder of a user's store."""
    named = {span for span in code_spans(page) if "/" in span and FOLDER.fullmatch(span)}
    assert not {name for name in named if not (ROOT / name).is_dir() and f"{name}.py" not in MODULES}
