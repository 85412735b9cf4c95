"""`txnctl tables export`."""

from __future__ import annotations

import itertools
import os
import pty
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage import Store
from storage.limits import BUFFER_KEYS_MAX, TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX
from tests.model_runs import examples
from tests.row_json import row_json
from tests.txnctl.commands.tables.tables_export_steps import rows, started
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("path")


FORMATS = ("ndjson", "csv")


AWKWARD = {
    b"\n": b"\r\n",
    b"\r": b"a\rb\nc\r",
    b" ": b" , ",
    b'"': b'""',
    b",": b"",
    b"\x00": b"\x00\xff",
    b"\xef\xbb\xbf": b"\xef\xbb\xbf",
    b"\xed\xa0\x80": b"\xf4\x90\x80\x80",
    b"\xff" * TABLE_KEY_BYTES_MAX: bytes(range(256)),
    "größe\u2028\u202e".encode(): b"null",
    b"-1": b"-1",
    b"key": b"value",
}


class TestIdentity:
    """`export | import`."""

    @settings(
        max_examples=examples(60),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(
        content=st.dictionaries(
            st.one_of(st.binary(min_size=1, max_size=12), st.text('a",\r\n é', min_size=1).map(str.encode)),
            st.one_of(st.binary(max_size=40), st.text('a",\r\n é').map(str.encode)),
            min_size=1,
            max_size=12,
        ),
        form=st.sampled_from(FORMATS),
    )
    def test_what_is_exported_is_imported_as_it_was(
        self, run: Any, path: Path, content: dict[bytes, bytes], form: str
    ) -> None:
        """Any bytes, in both formats."""
        with Store.open(path) as store:
            for name in ("from", "to"):
                if store.has_table(name):
                    store.admin.tables.delete_table(name)
                store.create_table(name)
            store.table("from").import_rows(content.items())
        printed = run("tables", "export", "from", "-o", form)
        assert run("tables", "import", "to", "--input", form, stdin=printed.out_bytes).status == 0
        assert rows(path, "to") == content

    @pytest.mark.parametrize("form", FORMATS)
    def test_awkward_ones_too(self, run: Any, path: Path, form: str) -> None:
        """Line ends, quotes, byte order marks, half surrogates; and the export is UTF-8, a header and a line a row."""
        with Store.open(path) as store:
            store.create_table("from")
            store.table("from").import_rows(AWKWARD.items())
        printed = run("tables", "export", "from", "-o", form).out_bytes
        printed.decode()
        assert run("tables", "import", "to", "--create", "--input", form, stdin=printed).status == 0
        assert rows(path, "to") == AWKWARD

    def test_large_values(self, run: Any, path: Path) -> None:
        """The largest there can be, at their longest when written out."""
        content = {b"nul": b"\x00" * TABLE_VALUE_BYTES_MAX, b"quotes": b'"' * TABLE_VALUE_BYTES_MAX}
        with Store.open(path) as store:
            store.create_table("large")
            store.table("large").import_rows(content.items())
        for form in FORMATS:
            printed = run("tables", "export", "large", "-o", form).out_bytes
            assert run("tables", "import", form, "--create", "--input", form, stdin=printed).status == 0
            assert rows(path, form) == content


class TestExport:
    """What is printed."""

    def test_formats(self, run: Any) -> None:
        """An object a line by default; CSV under a header."""
        assert run("tables", "export", "accounts").out.splitlines() == [
            '{"key":"B1","value":"100"}',
            '{"key":"B2","value":"200"}',
            '{"key":"B3","value":"300"}',
        ]
        assert run("tables", "export", "accounts", "-o", "csv").out.splitlines() == [
            "key,value,keyBase64,valueBase64",
            "B1,100,,",
            "B2,200,,",
            "B3,300,,",
        ]
        assert run("tables", "export", "accounts", "-o", "json").status == 2

    @pytest.mark.parametrize("form", FORMATS)
    def test_an_empty_table_can_be_exported_and_imported(self, run: Any, path: Path, form: str) -> None:
        """Nothing, or the header alone."""
        run("tables", "create", "empty")
        printed = run("tables", "export", "empty", "-o", form)
        assert printed.status == 0
        done = run("tables", "import", "accounts", "--input", form, "-o", "json", stdin=printed.out_bytes)
        assert done.json["rows"] == 0
        assert len(rows(path)) == 3

    def test_a_range(self, run: Any) -> None:
        """By prefix, from and to."""
        printed = run("tables", "export", "accounts", "--start", "B2", "--end", "B3")
        assert [row["key"] for row in printed.rows] == ["B2"]
        assert [row["key"] for row in run("tables", "export", "accounts", "--prefix", "B3").rows] == ["B3"]

    def test_in_a_serializable_transaction_it_is_one_moment(self, run: Any) -> None:
        """What commits later is not in it."""
        txn = run("transactions", "begin").out.strip()
        run("tables", "put", "accounts", "B1", "0")
        assert run("tables", "export", "accounts", "--txn", txn).rows[0]["value"] == "100"
        assert run("tables", "export", "accounts").rows[0]["value"] == "0"


class TestImport:
    """What is read."""

    def test_ctrl_c_leaves_nothing(self, path: Path) -> None:
        """130; the transaction is aborted on the way out."""
        with started("import", "accounts") as process:
            assert process.stdin is not None
            assert process.stderr is not None
            lines = [b'{"key":"%06d","value":""}\n' % number for number in range(3 * BUFFER_KEYS_MAX)]
            process.stdin.write(b"".join(lines))
            process.stdin.flush()
            with Store.open(path, read_only=True) as store:
                wait_for(
                    lambda: bool(row_json(store.reports.list_intents(limit=1))), "a part of it is written"
                )
                process.send_signal(signal.SIGINT)
                assert process.wait(20) == 130
                assert b"nothing is imported" in process.stderr.read()
                assert row_json(store.reports.list_transactions()) == []
        assert len(rows(path)) == 3


class TestProgress:
    """On a terminal, and nowhere else."""

    def test_it_is_shown_on_a_terminal_only(self, tmp_path: Path) -> None:
        """Where it takes more than a second; redirected there is no escape code."""
        ours, theirs = pty.openpty()
        with started("import", "accounts", stderr=theirs, stdin=subprocess.PIPE) as process:
            os.close(theirs)
            assert process.stdin is not None
            shown, until = b"", time.monotonic() + 60
            for number in itertools.count():
                if b"Import  " in shown and b" rows  " in shown:
                    break
                assert time.monotonic() < until, shown
                process.stdin.write(b'{"key":"%d","value":""}\n' % number)
                process.stdin.flush()
                if select.select([ours], [], [], 0.05)[0]:
                    shown += os.read(ours, 4096)
            process.stdin.close()
            # The process could block on a full terminal before its end.
            with suppress(OSError):
                while os.read(ours, 4096):
                    pass
            assert process.wait(60) == 0
        os.close(ours)
        with started("import", "accounts", stdin=subprocess.PIPE) as process:
            _, err = process.communicate(b'{"key":"a","value":""}\n')
            assert err == b""
