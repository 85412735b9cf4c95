"""`-o name`: the very bytes of a name, which an argument takes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.output import render
from txnctl.output.render import RowForm


def test_names_that_are_printed_are_read_back(run: Any, path: Path) -> None:
    """Keys with a tab, with a backslash and a letter, and of any bytes: each gives its own value."""
    keys = {b"a\tb": b"tab", b"a\\tb": b"backslash", b"\xff": b"byte", b"\x1b[1m": b"escape"}
    with Store.open(path) as store:
        for key, value in keys.items():
            store.table("odd", create=True).put(key, value)
    lines = run("tables", "scan", "odd", "-o", "name").out_bytes.splitlines()
    assert sorted(lines) == sorted(keys)
    for line in lines:
        word = line.decode("utf-8", "surrogateescape")
        assert run("tables", "get", "odd", word, "-o", "value").out_bytes == keys[line] + b"\n"


def test_a_name_with_a_line_end_is_refused(run: Any, path: Path) -> None:
    """A line that reads as two names is never printed; the error names the format that has the name whole."""
    with Store.open(path) as store:
        store.table("odd", create=True).put(b"two\nlines", b"v")
    refused = run("tables", "scan", "odd", "-o", "name")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.endswith(" For example: txnctl tables scan odd -o ndjson\n")


def test_a_hint_that_names_a_value_ends_in_a_line_with_it(
    run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a variable chose the format, and where the key itself is on the line; the line works as typed."""
    with Store.open(path) as store:
        store.table("odd", create=True).put(b"two\nlines", b"v")
        store.create_topic("orders")
    scan, tail = ("tables", "scan", "odd"), ("consume", "orders", "-f", "-o", "json")
    for words, variables, wanted in (
        ((*scan, "--prefix", "two", "-o", "name"), {}, "txnctl tables scan odd --prefix two -o ndjson"),
        ((*scan, "--prefix", "two\n", "-o", "name"), {}, "txnctl tables scan accounts -o ndjson"),
        (tail, {}, "txnctl consume orders -f -o ndjson"),
        ((*tail[:2], "--store", str(path), *tail[2:]), {}, f"txnctl --store {path} consume orders -f -o ndjson"),
        (scan, {"TXNCTL_OUTPUT": "name"}, "txnctl tables scan odd -o ndjson"),
    ):  # fmt: skip
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        refused = run(*words)
        assert refused.status == 2, refused
        assert refused.err.rstrip().partition(" For example: ")[2].partition('"')[0] == wanted, refused.err
    assert '"key":"two\\nlines"' in run(*scan, "-o", "ndjson").out


def test_a_terminal_gets_no_control_character() -> None:
    """There a name is for people."""
    form = RowForm((), "key", terminal=True)
    (shown,) = render.many([{"key": "a\tb\x1b"}], "name", form, None)
    assert shown == "a\\tb\\x1b\n"
