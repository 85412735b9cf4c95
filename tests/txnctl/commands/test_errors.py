"""`txnctl errors`: every code with its exit code and meaning."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import txnctl
from storage.errors import ALL, TxnctlError
from txnctl.cli.exit_codes import COMMAND_LINE_ERRORS
from txnctl.cli.remedies import REMEDIES


def test_every_code_is_listed_once(run: Any) -> None:
    """Those of the engine and those of the command line; the root of the tree is none."""
    rows = run("errors", "list", "-o", "json").json
    assert {row["code"] for row in rows} == (set(ALL) - {"error"}) | set(COMMAND_LINE_ERRORS)
    assert len(rows) == len({row["code"] for row in rows})
    assert [row["exitCode"] for row in rows] == sorted(row["exitCode"] for row in rows)
    assert all(row["meaning"].endswith(".") and "\n" not in row["meaning"] for row in rows)


def test_every_class_of_error_is_listed(run: Any) -> None:
    """Also those that a single module of the command line raises."""
    for module in walk_packages(txnctl.__path__, "txnctl."):
        if not module.name.endswith("__main__") and ".generate" not in module.name:
            import_module(module.name)
    kinds = [TxnctlError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    listed = {row["code"] for row in run("errors", "list", "-o", "json").json}
    assert {kind.code for kind in kinds if kind.__module__.startswith(("storage.", "txnctl."))} - {
        "error"
    } <= listed


def test_every_code_has_a_remedy(run: Any) -> None:
    """Short enough for a line of a terminal behind `txnctl: hint: `."""
    rows = run("errors", "list", "-o", "json").json
    assert {row["code"] for row in rows} == set(REMEDIES)
    assert [row["remedy"] for row in rows if not row["remedy"].endswith(".") or len(row["remedy"]) > 66] == []
    assert REMEDIES["writer-busy"] in run("errors", "explain", "writer-busy").out


def test_an_error_without_a_hint_of_its_own_says_what_to_do(run: Any, tmp_path: Path) -> None:
    """A directory that is no store, one that is there already, and the end of a wait."""
    for words, hint in (
        # As a hint of a run with --store, the command names the store.
        (
            ("topics", "list", "--store", str(tmp_path)),
            REMEDIES["not-a-store"].replace("txnctl ", f"txnctl --store {tmp_path} "),
        ),
        (("store", "init", str(tmp_path / "a")), None),
        # The command has the option, which the hint names.
        (
            ("store", "init", str(tmp_path / "a")),
            "Take what is there (--if-not-exists), or choose another name.",
        ),
    ):
        outcome = run(*words, "-o", "json")
        assert (outcome.status == 0) is (hint is None)
        assert hint is None or outcome.error["hint"] == hint


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


def test_a_misspelled_code_is_told_the_nearest(run: Any) -> None:
    """With the command; without a near one it is the list."""
    assert run("errors", "explain", "usge").err.endswith("Did you mean usage? txnctl errors explain usage\n")
    assert run("errors", "explain", "zzzz").err.endswith("All codes: txnctl errors list\n")
