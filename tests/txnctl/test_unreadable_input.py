"""Input that cannot be read is refused, and changes nothing: absent is not empty. Real processes and descriptors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store

pytestmark = pytest.mark.usefixtures("path")

TOPICS = ("orders",)

OF_STANDARD_INPUT: list[tuple[str, ...]] = [
    ("tables", "put", "accounts", "B1"),
    ("tables", "put", "accounts", "B1", "-"),
    ("tables", "import", "accounts"),
    ("tables", "import", "new", "-", "--create"),
    ("tables", "import", "new", "-", "--create", "--input", "csv"),
    ("produce", "orders"),
    ("produce", "new", "--create"),
    ("produce", "new", "--create", "--input", "ndjson"),
    ("produce", "new", "--create", "--input", "csv"),
    ("produce", "new", "--create", "--input", "raw"),
    ("produce", "new", "--create", "--atomic"),
    ("produce", "new", "--create", "--access-mode", "Exclusive"),
    ("produce", "orders", "-m", "a", "--session-file", "-"),
    ("producers", "close", "--session-file", "-"),
    ("pipeline", "sql", "-"),
]
"""Every command that reads standard input."""

OF_FILES: list[tuple[str, ...]] = [
    ("tables", "import", "new", "--create", "FILE"),
    ("produce", "new", "--create", "FILE"),
    ("produce", "orders", "-m", "a", "--session-file", "FILE"),
    ("producers", "close", "--session-file", "FILE"),
    ("demo", "--data", "FILE"),
    ("pipeline", "audit", "orders", "--table", "accounts", "--data", "FILE"),
]
"""Every command that reads a file of its own, before a JVM starts."""


@pytest.fixture(autouse=True)
def unchanged(path: Path) -> Iterator[None]:
    """The table `accounts` has one row, and nothing changes."""
    with Store.open(path) as store:
        store.create_table("accounts")
        store.table("accounts").put(b"B1", b"5")
    before = contents(path)
    yield
    assert contents(path) == before


def contents(path: Path) -> Any:
    """All topics and tables with their messages and rows."""
    with Store.open(path, read_only=True) as store:
        names = [row.name for row in store.reports.list_topics()]
        topics = {name: [entry.values for entry in store.reader(name).entries()] for name in names}
        tables = {row.table: list(store.table(row.table).scan()) for row in store.reports.list_tables()}
        return topics, tables


def refused(words: tuple[str, ...], shell: str = "", **streams: Any) -> str:
    """Standard error of a line that is refused with exit code 2."""
    line = [sys.executable, "-m", "txnctl", *words]
    if shell:
        line = ["sh", "-c", f'"$@" {shell}', "sh", *line]
    done = subprocess.run(line, **streams, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("words", OF_STANDARD_INPUT, ids=" ".join)
class TestStandardInput:
    """What `<` of a shell can give."""

    def test_a_closed_one_is_refused(self, words: tuple[str, ...]) -> None:
        """As closed standard output is; /dev/null is empty on purpose."""
        told = refused(words, "<&-")
        assert "standard input is closed" in told
        assert "Redirect it from /dev/null" in told

    def test_one_for_writing_is_refused(self, words: tuple[str, ...]) -> None:
        """Also what the command of a closed one inherits: `transactions run -- txnctl tables put ... <&-`."""
        assert "standard input is closed" in refused(words, "0>/dev/null")

    def test_one_that_fails_is_refused(self, words: tuple[str, ...]) -> None:
        """EIO at the first byte."""
        with open("/proc/self/mem", "rb") as unreadable:
            assert "cannot read standard input: Input/output error" in refused(words, stdin=unreadable)


def test_a_command_that_is_run_inherits_that_it_is_closed(path: Path) -> None:
    """The descriptor is no open /dev/null to the commands below."""
    below = (sys.executable, "-m", "txnctl", "tables", "put", "accounts", "B1")
    told = refused(("transactions", "run", "--", *below), "<&-")
    assert "standard input is closed" in told


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (words, file)
        for words in OF_FILES
        for file in ("/proc", "/proc/self/mem", "/no-such-file")
        # A directory of the bank's lines is read on Spark.
        if words[1] != "audit" or file != "/proc"
    ],
)
def test_a_file_that_cannot_be_read_is_refused(words: tuple[str, ...], file: str) -> None:
    """A directory, one that fails in the middle, one that is not there: by name."""
    told = refused(tuple(file if word == "FILE" else word for word in words))
    assert file in told
