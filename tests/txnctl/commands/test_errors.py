"""`txnctl errors`: every code with its exit code and meaning."""

from __future__ import annotations

from typing import Any

from storage.errors import ALL
from txnctl.cli.exit_codes import COMMAND_LINE_ERRORS


def test_every_code_is_listed_once(run: Any) -> None:
    """Those of the engine and those of the command line; the root of the tree is none."""
    rows = run("errors", "list", "-o", "json").json
    assert {row["code"] for row in rows} == (set(ALL) - {"error"}) | set(COMMAND_LINE_ERRORS)
    assert len(rows) == len({row["code"] for row in rows})
    assert [row["exitCode"] for row in rows] == sorted(row["exitCode"] for row in rows)
    assert all(row["meaning"].endswith(".") and "\n" not in row["meaning"] for row in rows)


def test_one_is_explained(run: Any) -> None:
    """As the list has it."""
    row = run("errors", "explain", "writer-busy", "-o", "json").json
    assert (row["code"], row["exitCode"], row["retryable"]) == ("writer-busy", 5, True)
    assert row in run("errors", "list", "-o", "json").json


def test_an_unknown_code_is_not_found(run: Any) -> None:
    """The root among them: it is never raised."""
    for code in ("no-such-code", "error"):
        outcome = run("errors", "explain", code, "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (3, "not-found")
