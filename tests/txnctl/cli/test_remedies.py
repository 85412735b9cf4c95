"""Next steps of errors without a hint of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from txnctl.cli.main import root
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


def _commands() -> Iterator[str]:
    """The command lines in backquotes of every text of the sources; a hole of a text is a word."""
    for path in [*Path("storage").rglob("*.py"), *Path("txnctl").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join([str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts])
            if isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Constant) and isinstance(node.value, str)
            ):
                yield from re.findall(r"`(txnctl [a-z][^`\n]*)`", text)


def test_every_hint_is_a_command_line_of_the_tree() -> None:
    """Each command in backquotes exists, and has each option that the text gives to it."""
    wrong, lines = [], {line for line in _commands() if not line.startswith("txnctl ...")}
    for line in sorted(lines):
        command: click.Command | None = root()
        words = line.split()[1:]
        while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z-]+", words[0]):
            command = command.get_command(click.Context(command), words.pop(0))
        options = [
            word.partition("=")[0] for word in words if word.startswith("--") and word not in ("--", "--help")
        ]
        known = (
            {opt for param in command.params for opt in param.opts + param.secondary_opts}
            if command
            else set()
        )
        if command is None or not known.issuperset(options):
            wrong.append(line)
    assert len(lines) > 50
    assert wrong == []


def test_the_next_step_after_an_error_of_any_command_names_no_option_of_some() -> None:
    """`--if-not-exists` is an option of four commands; others create stores too."""
    assert "--if-not-exists" not in str(REMEDIES["already-exists"])
