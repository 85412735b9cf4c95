"""`txnctl tables import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.limits import BUFFER_KEYS_MAX
from tests.txnctl.commands.tables.tables_export_steps import rows, started
from txnctl.commands.tables.import_ import IMPORTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


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

    @pytest.mark.parametrize("given", [b"bad", b'{"key":"B1","value":"1"}\nbad'])
    def test_a_refused_input_creates_no_table(self, run: Any, given: bytes) -> None:
        """Whether its first line is bad or a later one; in a transaction of the caller too."""
        txn = run("transactions", "begin").out.strip()
        for words in ((), ("--txn", txn)):
            assert run("tables", "import", "new", "--create", *words, stdin=given).status == 2
            assert run("tables", "list", "-o", "name").out == "accounts\n"

    def test_an_empty_input_creates_the_table(self, run: Any) -> None:
        """The command has succeeded, and a table was asked for."""
        assert run("tables", "import", "new", "--create", stdin=b"").status == 0
        assert run("tables", "import", "new", "--create", stdin=b"").status == 0
        assert run("tables", "list", "-o", "name").out == "accounts\nnew\n"

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

    def test_control_characters_of_csv_are_content(self, run: Any, path: Path, tmp_path: Path) -> None:
        """Every byte but LF, quotes and commas, and a CR before LF; from a pipe and from a file."""
        data = b"key,value\nB1,a\rb\r\nB2,\0\x0b\x0c\x85\r\r\nB3,\xff\r"
        expected = {b"B1": b"a\rb", b"B2": b"\0\x0b\x0c\x85\r", b"B3": b"\xff\r"}
        with started("import", "accounts", "--input", "csv") as process:
            process.communicate(data, 30)
            assert process.returncode == 0
        assert rows(path) == expected
        (tmp_path / "rows").write_bytes(data.replace(b"b", b"c"))
        assert run("tables", "import", "accounts", str(tmp_path / "rows"), "--input", "csv").status == 0
        assert rows(path) == {**expected, b"B1": b"a\rc"}

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
