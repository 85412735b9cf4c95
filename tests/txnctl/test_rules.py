"""The rules of the command line that concern produce and consume, each held by what a script would do.

1   what consume prints as NDJSON, produce stores again as it was
2   a slow pipe's lines are stored within a second
3   produce -m in a loop eats no standard input
4   Ctrl-C in produce --atomic leaves nothing visible
6   -o json prints one valid document or nothing; table and JSON agree
7   no escape codes, bars or prompts when redirected
8   where the writer gate is held: who holds it, an end to the wait, Ctrl-C at once
11  --follow for long leaves no long reader
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage import EARLIEST, IsolationLevel, Store
from tests.model_runs import examples
from tests.row_json import row_json
from tests.txnctl.processes import started
from tests.waiting import let_pass, wait_for

pytestmark = pytest.mark.usefixtures("path")
TOPICS = ("orders",)

TXNCTL = f"{sys.executable} -m txnctl"


def shell(script: str) -> subprocess.CompletedProcess[bytes]:
    """Run a script as people write them; `txnctl` is ours."""
    return subprocess.run(
        ["/bin/sh", "-c", f'txnctl() {{ {TXNCTL} "$@"; }}\n{script}'],
        capture_output=True,
        check=False,
        timeout=60,
    )


def values(
    path: Path, topic: str = "orders", level: IsolationLevel = IsolationLevel.READ_COMMITTED
) -> list[bytes | None]:
    with Store.open(path, read_only=True) as store:
        return [message.value for message in store.reader(topic, start=EARLIEST, isolation_level=level)]


def identity(path: Path, topic: str) -> list[Any]:
    """Of each message what a producer gives it."""
    with Store.open(path, read_only=True) as store:
        return [
            (message.value, message.key, message.properties, message.event_time)
            for message in store.reader(topic)
        ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CONTENTS = st.one_of(st.none(), st.binary(max_size=40), TEXTS.map(str.encode))
MESSAGES = st.lists(
    st.tuples(
        CONTENTS,
        CONTENTS,
        st.dictionaries(TEXTS, TEXTS, max_size=3),
        st.one_of(st.none(), st.integers(0, (1 << 63) - 1)),
    ),
    min_size=1,
    max_size=12,
)


class TestIdentity:
    """Rule 1."""

    @settings(
        max_examples=examples(60),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(messages=MESSAGES, in_batches=st.booleans())
    def test_what_is_printed_is_stored_again_as_it_was(
        self, run: Any, path: Path, messages: list[Any], in_batches: bool
    ) -> None:
        """Value, key, properties, event time; null, empty, binary; from a reader and from a subscription."""
        names = ["from", "to", "again"]
        with Store.open(path) as store:
            for name in names:
                if store.has_topic(name):
                    store.admin.topics.delete_topic(name, force=True)
                store.create_topic(name)
            producer = store.create_producer("from")
            if in_batches:
                columns = [list(column) for column in zip(*messages, strict=True)]
                producer.send_batch(
                    columns[0], keys=columns[1], properties=columns[2], event_times=columns[3]
                )
            else:
                for value, key, properties, event_time in messages:
                    producer.send(value, key=key, properties=properties, event_time=event_time)
        printed = run("consume", "from", "-o", "ndjson")
        assert run("produce", "to", "--input", "ndjson", stdin=printed.out_bytes).status == 0
        handed_out = run("consume", "to", "-s", "s", "--from", "earliest", "-o", "ndjson")
        assert run("produce", "again", "--input", "ndjson", stdin=handed_out.out_bytes).status == 0
        assert identity(path, "from") == identity(path, "to") == identity(path, "again") == messages

    def test_through_a_pipe(self, path: Path) -> None:
        """Thousands of messages of any bytes."""
        chunk = [bytes([number % 256]) * (number % 300) for number in range(5000)]
        with Store.open(path) as store:
            store.create_topic("copy")
            store.create_producer("orders").send_batch(chunk)
        ended = shell("txnctl consume orders -o ndjson | txnctl produce copy --input ndjson --atomic")
        assert ended.returncode == 0, ended
        assert values(path, "copy") == chunk


class TestPipes:
    """Rules 2 and 3."""

    def test_a_slow_pipe_is_stored_within_a_second(self, path: Path) -> None:
        """Each line, while the pipe stays open; also in an open transaction, where it shows uncommitted."""
        level = IsolationLevel.READ_UNCOMMITTED
        for words in ((), ("--batch", "1000"), ("--atomic",)):
            before = len(values(path, level=level))
            with started("produce", "orders", *words) as process:
                assert process.stdin is not None
                for number in range(1, 4):
                    process.stdin.write(b"%d\n" % number)
                    process.stdin.flush()
                    wait_for(
                        lambda count=before + number: len(values(path, level=level)) == count,
                        "the line is stored",
                    )
                process.stdin.close()
                assert process.wait(20) == 0
        assert values(path) == [b"1", b"2", b"3"] * 3

    def test_produce_in_a_loop_eats_no_input(self, path: Path) -> None:
        """`while read l; do txnctl produce t -m "$l"; done`."""
        ended = shell(
            """printf '%s\\n' 1 2 3 | while read -r line; do txnctl produce orders -m "$line" -q; done"""
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
        assert values(path) == [b"1", b"2", b"3"]

    def test_consume_in_a_loop_eats_no_input(self) -> None:
        """Nor does it."""
        ended = shell("printf '1\\n2\\n' | while read -r line; do txnctl consume orders; echo $line; done")
        assert ended.stdout == b"1\n2\n"


class TestInterruption:
    """Rule 4."""

    def test_ctrl_c_in_an_atomic_input_leaves_nothing_visible(self, path: Path) -> None:
        """The transaction is aborted on the way out, not left to somebody."""
        with started("produce", "orders", "--atomic", "--batch", "10") as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(b"".join(b"%d\n" % number for number in range(1000)))
            process.stdin.flush()
            level = IsolationLevel.READ_UNCOMMITTED
            wait_for(lambda: len(values(path, level=level)) >= 500, "half of it is sent")
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
            assert b"aborted: nothing is stored" in process.stderr.read()
        assert values(path) == []
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.list_transactions()) == []


class TestDocuments:
    """Rules 6 and 7."""

    def test_json_is_one_document_or_nothing(self, run: Any) -> None:
        """In success and in failure."""
        for words, stdin in (
            (("produce", "orders", "-m", "a"), b""),
            (("produce", "orders", "--print-ids"), b"a\nb\n"),
            (("produce", "orders", "--input", "ndjson"), b'{"value":"c"}\nbad\n'),
            (("produce", "none", "-m", "a"), b""),
            (("consume", "orders"), b""),
            (("consume", "orders", "-s", "s", "--from", "earliest"), b""),
            (("consume", "orders", "--timeout", "10ms", "-n", "99"), b""),
            (("consume", "none"), b""),
        ):
            outcome = run(*words, "-o", "json", stdin=stdin)
            if outcome.status == 0:
                json.loads(outcome.out)
            else:
                assert outcome.out == ""
                assert json.loads(outcome.err.splitlines()[-1])["exitCode"] == outcome.status

    def test_table_and_json_agree(self, run: Any, path: Path) -> None:
        """The same messages, with the same facts."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            producer.send(b"a", key="k", properties={"p": "v"}, event_time=5)
            with store.transaction() as txn:
                producer.send(b"b", txn=txn)
        rows = run("consume", "orders", "-o", "json").json
        _, *lines = run("consume", "orders", "-o", "table").out.splitlines()
        assert len(lines) == len(rows)
        for line, row in zip(lines, rows, strict=True):
            cells = line.split()
            for name in ("messageId", "publishTimeAt", "value", "key", "txnId", "txnState"):
                assert (row[name] or "-") in cells
            for name, value in row["properties"].items():
                assert f"{name}={value}" in cells

    def test_nothing_is_animated_when_redirected(self, tmp_path: Path) -> None:
        """No escape codes, no carriage returns, no prompts, though it takes a while."""
        lines = tmp_path / "lines"
        lines.write_bytes(b"".join(b"%0100d\n" % number for number in range(100_000)))
        script = (
            f"txnctl produce orders {lines} -k k && txnctl consume orders -o table && txnctl consume orders"
        )
        ended = shell(f"({script}; txnctl consume orders -s s --from earliest -n 1000) </dev/null")
        assert ended.returncode == 0, ended.stderr
        for out in (ended.stdout, ended.stderr):
            assert b"\x1b" not in out
            assert b"\r" not in out
        assert ended.stdout.count(b"\n") == 100_001 + 100_000 + 1000


class TestHeldGate:
    """Rule 8."""

    @contextmanager
    def _held(self, path: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Another process holds the writer gate."""
        program = (
            "import signal, sys\n"
            "from storage import Store\n"
            "with Store.open(sys.argv[1]) as store:\n"
            "    def hold(batch):\n"
            "        print('held', flush=True)\n"
            "        signal.pause()\n"
            "    store.connection.write(hold)\n"
        )
        with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            try:
                yield holder
            finally:
                holder.kill()

    @pytest.mark.parametrize("words", [("produce", "orders", "-m", "a"), ("consume", "orders", "-s", "s")])
    def test_the_holder_is_named_and_the_wait_ends(self, path: Path, words: tuple[str, ...]) -> None:
        """A note with the pid within a second or so, exit 5 at the timeout; reading is not held up."""
        with self._held(path) as holder:
            with started(*words, "--lock-timeout", "1500ms", "-o", "ndjson") as process:
                assert process.stderr is not None
                note = process.stderr.readline().decode()
                assert "waiting for the writer gate" in note
                assert str(holder.pid) in note
                assert process.wait(20) == 5
                error = json.loads(process.stderr.readline())
                assert (error["code"], error["retryable"]) == ("writer-busy", True)
                assert str(holder.pid) in error["message"]
            with started("consume", "orders") as reader:
                assert reader.wait(20) == 0

    def test_ctrl_c_ends_the_wait_at_once(self, path: Path) -> None:
        """Although the timeout is far away; an atomic input that was begun is left to the next writer."""
        with started("produce", "orders", "--atomic", "--batch", "1", "--lock-timeout", "1h") as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(b"a\n")
            process.stdin.flush()
            level = IsolationLevel.READ_UNCOMMITTED
            wait_for(lambda: values(path, level=level) == [b"a"], "the first line is sent")
            with self._held(path):
                process.stdin.write(b"b\n")
                process.stdin.close()
                assert b"waiting for the writer gate" in process.stderr.readline()
                began = time.monotonic()
                process.send_signal(signal.SIGINT)
                assert process.wait(20) == 130
                assert time.monotonic() - began < 10
                assert b"left to the next writer" in process.stderr.read()
        assert values(path) == []
        with Store.open(path) as store:
            store.create_producer("orders").send(b"next")
            assert row_json(store.reports.list_transactions()) == []
        assert values(path) == [b"next"]

    def test_an_atomic_input_that_only_waits_says_so_too(self, path: Path) -> None:
        """What it keeps cannot be written: the holder is named; Ctrl-C ends it at once, as if it had never been."""
        with started("produce", "orders", "--atomic", "--lock-timeout", "1h") as process:
            assert process.stdin is not None
            assert process.stderr is not None
            with Store.open(path, read_only=True) as store:
                wait_for(lambda: row_json(store.reports.list_producers("orders")) != [], "it is connected")
            with self._held(path) as holder:
                process.stdin.write(b"a\n")
                process.stdin.flush()
                note = process.stderr.readline().decode()
                assert "waiting for the writer gate" in note
                assert str(holder.pid) in note
                process.send_signal(signal.SIGINT)
                assert process.wait(20) == 130
                assert b"the transaction is aborted: nothing is stored" in process.stderr.read()
        with Store.open(path) as store:
            assert (
                row_json(store.reports.list_transactions(ended=True))
                == row_json(store.reports.list_transactions())
                == []
            )
        assert values(path) == []


class TestFollowing:
    """Rule 11."""

    def test_a_follower_leaves_no_long_reader(self, path: Path) -> None:
        """Pages that LMDB could not reuse would make the file grow under every commit."""
        with started("consume", "orders", "-f", "-o", "value") as process, Store.open(path) as store:
            assert process.stdout is not None
            producer = store.create_producer("orders")
            for number in range(50):
                producer.send(b"%d" % number)
                assert process.stdout.readline() == b"%d\n" % number
            for _ in range(20):
                assert max(behind(store, process.pid), default=0) <= 3
                let_pass(0.01, "the follower has time to look")
                producer.send(b"x")
            assert os.stat(path / "data.mdb").st_size < 10_000_000

    def test_a_reader_whose_pipe_is_full_holds_nothing(self, path: Path) -> None:
        """Data are handed out at the user's pace, views are not kept meanwhile."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            producer.send_batch([b"x" * 1000] * 5000)
            with started("consume", "orders") as process:
                assert process.stdout is not None
                process.stdout.read(1)
                for _ in range(10):
                    producer.send(b"later")
                wait_for(lambda: max(behind(store, process.pid), default=0) == 0, "no view is open")


def behind(store: Store, pid: int) -> list[int]:
    """How many commits have happened since each view that the process has open was begun."""
    return [
        row["behind"]
        for row in row_json(store.reports.list_readers())
        if row["pid"] == pid and row["behind"] is not None
    ]
