"""The page of promises names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "RELIABILITY.md"
NAMED = re.compile(r"`(tests/[a-z_/]+\.py)(?:::(test_[a-z_0-9]+))?`")


def test_each_promise_has_a_test_that_exists() -> None:
    """Every row of the table names a test, and every test on the page is in its file."""
    text = PAGE.read_text(encoding="utf-8")
    promises = text.partition("## Promises")[2].partition("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    assert [row for row in rows if not NAMED.search(row)] == []
    for file, name in NAMED.findall(text):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert not name or name in {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
        }, name
