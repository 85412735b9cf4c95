"""Next steps of errors without a hint of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from txnctl.cli.remedies import REMEDIES, remedy_hint


def test_a_path_is_looked_at_where_it_ends_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that works, whether the path is there, in a missing directory, below a file, or empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    for path, shown in (
        (f"{tmp_path}/a file", f"'{tmp_path}/a file'"),
        (f"{tmp_path}/a file/below", f"'{tmp_path}/a file'"),
        (f"{tmp_path}/no/such/file", f"{tmp_path}"),
        ("no/file", f"{tmp_path}"),
        ("", "."),
    ):
        assert remedy_hint("invalid-value", {"path": path}) == f"Look what is there: ls -ld {shown}"


def test_other_values_are_corrected() -> None:
    """Those without a path, those on an object store, and errors of other kinds."""
    for details in ({}, {"path": 7}, {"path": "s3://bucket/file"}):
        assert remedy_hint("bad-input", details) == REMEDIES["bad-input"]
    assert remedy_hint("store-full", {"path": "/"}) != remedy_hint("bad-input", {"path": "/"})
