"""`-o name`: the very bytes of a name, which an argument takes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    assert "-o ndjson" in refused.err


def test_a_terminal_gets_no_control_character() -> None:
    """There a name is for people."""
    form = RowForm((), "key", terminal=True)
    (shown,) = render.many([{"key": "a\tb\x1b"}], "name", form, None)
    assert shown == "a\\tb\\x1b\n"
