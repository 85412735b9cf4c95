"""`txnctl tables export` and `import`: each other's inverse, to the byte; an import is there whole, or not at all."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage import Store
from storage.limits import BUFFER_KEYS_MAX, TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX
from tests.row_json import row_json
from tests.txnctl.processes import wait_for
from txnctl.commands.tables.import_ import IMPORTED
from txnctl.output.field import undeclared

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


@pytest.fixture
def path(path: Path) -> Path:
    """A store with three accounts, which every command is told of, verified in full when the test is over."""
    with Store.open(path) as store:
        store.create_table("accounts")
        store.table("accounts").import_rows((b"B%d" % number, b"%d00" % number) for number in (1, 2, 3))
    return path


def rows(path: Path, table: str = "accounts") -> dict[bytes, bytes]:
    """What a table holds."""
    with Store.open(path, read_only=True) as store:
        return {row.key: row.value for row in store.table(table).scan()}


def started(*words: str, **streams: Any) -> subprocess.Popen[bytes]:
    """`txnctl tables` with these words, its streams pipes unless said otherwise."""
    given = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
    return subprocess.Popen([sys.executable, "-m", "txnctl", "tables", *words], **given)


class TestIdentity:
    """`export | import`."""

    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
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

    def test_scan_can_be_imported(self, run: Any, path: Path) -> None:
        """What else a line of it says is ignored."""
        printed = run("tables", "scan", "accounts", "-o", "ndjson").out_bytes
        assert run("tables", "import", "to", "--create", stdin=printed).status == 0
        assert rows(path, "to") == rows(path)

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

    def test_it_says_how_many(self, run: Any, path: Path) -> None:
        """And leaves other keys alone; of a key that comes twice the last line counts; empty lines are none."""
        data = b'{"key":"B1","value":"1"}\n\n{"key":"B9","value":"8"}\r\n{"key":"B9","value":"9"}'
        done = run("tables", "import", "accounts", "-o", "json", stdin=data)
        assert done.json == {"table": "accounts", "rows": 3, "txnId": None, "transactionsAborted": []}
        assert not undeclared(done.json, IMPORTED)
        assert rows(path) == {b"B1": b"1", b"B2": b"200", b"B3": b"300", b"B9": b"9"}
        assert run("tables", "import", "accounts", stdin=data).out == "Imported 3 rows into accounts.\n"

    def test_from_a_file(self, run: Any, path: Path, tmp_path: Path) -> None:
        """A name, or - for standard input; one that is not there creates no table."""
        (tmp_path / "rows").write_text("key,value\nB1,1\n")
        assert run("tables", "import", "accounts", str(tmp_path / "rows"), "--input", "csv").status == 0
        assert rows(path)[b"B1"] == b"1"
        assert run("tables", "import", "accounts", "-", stdin=b'{"key":"B1","value":"2"}').status == 0
        assert rows(path)[b"B1"] == b"2"
        assert run("tables", "import", "new", str(tmp_path / "none"), "--create").status == 2
        assert run("tables", "list", "-o", "name").out == "accounts\n"

    @pytest.mark.parametrize(
        "line",
        [
            b"nonsense",
            b"[]",
            b'{"key":"a"}',
            b'{"value":"a"}',
            b'{"key":"","value":"a"}',
            b'{"key":null,"value":"a"}',
            b'{"key":"a","value":null}',
            b'{"key":1,"value":"a"}',
            b'{"key":"a","value":["b"]}',
            b'{"key":"a","keyBase64":"YQ==","value":"b"}',
            b'{"keyBase64":"!","value":"b"}',
            b'{"key":"\\ud800","value":"b"}',
            b'{"key":"a","value":"b"} more',
            b"\xff",
            b'{"key":"%s","value":""}' % (b"k" * 401),
        ],
        ids=ascii,
    )
    def test_a_bad_line_of_ndjson_is_named_and_nothing_is_imported(
        self, run: Any, path: Path, line: bytes
    ) -> None:
        """Exit 2, whatever came before it."""
        data = b'{"key":"B1","value":"1"}\n' + line + b'\n{"key":"B2","value":"2"}\n'
        outcome = run("tables", "import", "accounts", "-o", "json", stdin=data)
        assert (outcome.status, outcome.out, outcome.error["code"]) == (2, "", "bad-line")
        assert outcome.error["details"]["lineNumber"] == 2
        assert "line 2" in outcome.error["message"]
        assert rows(path)[b"B1"] == b"100"
        assert run("transactions", "list", "-o", "json").json == []

    @pytest.mark.parametrize(
        ("data", "what"),
        [
            (b"value\n1\n", "no column named key"),
            (b"key\n1\n", "no column named value"),
            (b"key,value,key\n1,2,3\n", "twice"),
            (b"key,value,note\n1,2,3\n", "none of ours"),
            (b"\nkey,value\nB1,1\n", "no column named key"),
            (b"key,value\nB1,1\nB2\n", "line 3"),
            (b"key,value\nB1,1\n,2\n", "line 3"),
            (b'key,value\nB1,1\n"B2,2\n', "line 3"),
            (b"key,valueBase64\nB1,MQ==\nB2,2\n", "line 3"),
            (b"key,keyBase64,value\nB1,,1\nB2,QjI=,2\n", "line 3"),
            (b'key,value\nB1,"1\n1"\nB2\n', "line 4"),
        ],
        ids=ascii,
    )
    def test_a_bad_line_of_csv_too(self, run: Any, path: Path, data: bytes, what: str) -> None:
        """And a header that is none."""
        outcome = run("tables", "import", "accounts", "--input", "csv", "-o", "json", stdin=data)
        assert (outcome.status, outcome.out) == (2, "")
        assert what in outcome.error["message"]
        assert outcome.error["hint"] or ",2" in data.decode()
        assert rows(path)[b"B1"] == b"100"

    def test_csv_with_few_columns_in_any_order(self, run: Any, path: Path) -> None:
        """A byte order mark, CRLF and quotes included."""
        data = b'\xef\xbb\xbfvalue,key\r\n"1, ""or"" 2",B1\r\n\r\n2,B2'
        assert run("tables", "import", "accounts", "--input", "csv", stdin=data).status == 0
        assert rows(path) == {b"B1": b'1, "or" 2', b"B2": b"2", b"B3": b"300"}
        only = b"valueBase64,keyBase64\nMQ==,QjM=\n"
        assert run("tables", "import", "accounts", "--input", "csv", stdin=only).status == 0
        assert rows(path)[b"B3"] == b"1"

    def test_many_rows_are_one_transaction(self, run: Any, path: Path) -> None:
        """Over several commits: a bad line behind thousands of good ones leaves nothing, without it all are there."""
        count = 3 * BUFFER_KEYS_MAX
        lines = [b'{"key":"%06d","value":"%d"}\n' % (number, number) for number in range(count)]
        outcome = run("tables", "import", "accounts", stdin=b"".join([*lines, b"bad\n"]))
        assert outcome.status == 2
        assert f"line {count + 1}" in outcome.err
        assert "nothing is imported" in outcome.err
        assert len(rows(path)) == 3
        assert run("transactions", "list", "-o", "json").json == []
        assert run("tables", "import", "accounts", stdin=b"".join(lines)).status == 0
        assert len(rows(path)) == 3 + count

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

    def test_who_is_too_slow_is_told(self, run: Any, path: Path) -> None:
        """At --timeout, while it waits for input too: exit 4, nothing imported."""
        with started("import", "accounts", "--timeout", "300ms") as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(b'{"key":"B1","value":"1"}\n')
            process.stdin.flush()
            assert process.wait(20) == 4
            said = process.stderr.read()
        assert b"0.3 s after the start" in said
        assert b"nothing is imported" in said
        assert rows(path)[b"B1"] == b"100"
        assert run("tables", "import", "accounts", "--timeout", "25h").status == 2

    def test_in_a_transaction_it_waits_for_the_commit(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of --txn or TXNCTL_TXN; a bad line leaves the transaction to its owner."""
        txn = run("transactions", "begin").out.strip()
        assert (
            run("tables", "import", "accounts", "--txn", txn, stdin=b'{"key":"B1","value":"1"}\n').status == 0
        )
        monkeypatch.setenv("TXNCTL_TXN", txn)
        assert run("tables", "import", "accounts", stdin=b"bad\n").status == 2
        assert run("tables", "import", "accounts", "--timeout", "1m").status == 2
        monkeypatch.delenv("TXNCTL_TXN")
        assert rows(path)[b"B1"] == b"100"
        assert run("transactions", "commit", txn).status == 0
        assert rows(path)[b"B1"] == b"1"

    def test_a_failure_in_your_own_transaction_says_what_may_be_in_it(self, run: Any, path: Path) -> None:
        """What was written before a bad line stays there, until the transaction is aborted or goes on."""
        txn = run("transactions", "begin").out.strip()
        lines = b"".join([b'{"key":"%06d","value":""}\n' % number for number in range(BUFFER_KEYS_MAX + 1)])
        outcome = run("tables", "import", "accounts", "--txn", txn, stdin=lines + b"bad\n")
        assert outcome.status == 2
        assert f"may be written in transaction {txn}: abort it" in outcome.err
        assert run("tables", "import", "accounts", "--txn", txn, stdin=lines).status == 0
        assert run("transactions", "commit", txn).status == 0
        assert len([key for key in rows(path) if key.isdigit()]) == BUFFER_KEYS_MAX + 1
        outcome = run("tables", "import", "accounts", "--txn", txn, stdin=lines)
        assert (outcome.status, "may be written" in outcome.err) == (4, False)

    def test_a_transaction_that_ended_is_refused_before_anything_is_read(self, run: Any) -> None:
        """Exit 4."""
        txn = run("transactions", "begin").out.strip()
        run("transactions", "abort", txn)
        assert run("tables", "import", "accounts", "--txn", txn, stdin=b"bad\n").status == 4


class TestProgress:
    """On a terminal, and nowhere else."""

    def test_it_is_shown_on_a_terminal_only(self, tmp_path: Path) -> None:
        """Where it takes more than a second; redirected there is no escape code."""
        ours, theirs = pty.openpty()
        with started("import", "accounts", stderr=theirs, stdin=subprocess.PIPE) as process:
            os.close(theirs)
            assert process.stdin is not None
            shown = b""
            for number in range(40):
                process.stdin.write(b'{"key":"%d","value":""}\n' % number)
                process.stdin.flush()
                time.sleep(0.06)
            process.stdin.close()
            assert process.wait(20) == 0
            while True:
                try:
                    data = os.read(ours, 4096)
                except OSError:
                    break
                if not data:
                    break
                shown += data
        os.close(ours)
        assert b"Import  " in shown
        assert b" rows  " in shown
        with started("import", "accounts", stdin=subprocess.PIPE) as process:
            _, err = process.communicate(b'{"key":"a","value":""}\n')
            assert err == b""
