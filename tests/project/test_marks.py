"""Marks by place name tests that are there, and no test leaves itself out but by one of two rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import KILLING, SLOW

ROOT = Path(__file__).parents[2]
SKIPS = {"tests/not_run.py", "tests/project/test_strictness.py"}
"""The rules, and the suite by which the rules are tested."""


@pytest.mark.parametrize("place", [*KILLING, *SLOW])
def test_a_mark_by_place_names_tests_that_are_there(place: str) -> None:
    """A file that was moved would run unmarked in the short check."""
    path, *names = place.split("::")
    files = [ROOT / path] if (ROOT / path).is_file() else sorted((ROOT / path).rglob("test_*.py"))
    found = {
        node.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    assert all(any(one.startswith(name) for one in found) for name in names)
    assert any(name.startswith("test_") for name in found)


def test_no_test_leaves_itself_out_otherwise() -> None:
    """A program that is missing is a mark, and a right that is withheld is `forbidden`: both say the way out."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if any(word in path.read_text() for word in ("pytest.skip" + "(", "importorskip" + "("))
    }
    assert found <= SKIPS
