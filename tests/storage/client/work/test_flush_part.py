"""One store transaction of a group: cut, interrupted, or failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from storage import Producer, Store, Table, TransactionState, faults
from storage.errors import GroupRefused, OutcomeUnknown, WriteTooOld
from storage.process.writer_gate import WriterGate
from tests.storage.client.group_steps import WAIT_S, ends_in, in_thread, interrupt_once
from tests.storage.producer_steps import values


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


class TestFlushPart:
    """The fate of a batch with many ends."""

    @pytest.mark.parametrize(
        ("point", "is_stored"),
        [
            ("environment.before_commit", False),
            ("environment.after_commit", True),
            ("group.between_ends", False),
        ],
    )
    def test_an_interrupt_is_resolved(
        self, store: Store, producer: Producer, table: Table, point: str, is_stored: bool
    ) -> None:
        """Nothing is written twice, and outcomes say what is stored."""

        with ends_in(KeyboardInterrupt), store.group() as group:
            with store.transaction() as txn:
                producer.send(b"in", txn=txn)
                table.put(b"k", b"v", txn=txn)
            producer.send(b"out")
            interrupt_once(point)
        assert group.durable == (2 if is_stored else 0)
        assert len(group.refused) == (0 if is_stored else 2)
        assert txn.state is (TransactionState.COMMITTED if is_stored else TransactionState.OPEN)
        assert values(store) == ([b"in", b"out"] if is_stored else [])
        if not is_stored:
            txn.commit()
            assert values(store) == [b"in"]

    def test_an_interrupt_is_resolved_while_another_thread_writes(
        self, store: Store, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The next batch of the process takes the superblock object over, and has changed it already."""
        other, here = store.create_producer("t"), threading.current_thread()
        writing, resolved = threading.Event(), threading.Event()
        writer = threading.Thread(target=lambda: other.send(b"other"))
        leave = WriterGate.leave

        def before_commit() -> None:
            if threading.current_thread() is writer:
                writing.set()
                resolved.wait(WAIT_S)

        def leave_and_stop(gate: WriterGate) -> None:
            leave(gate)
            if threading.current_thread() is here:
                monkeypatch.undo()
                faults.arm("environment.before_commit", before_commit)
                writer.start()
                writing.wait(WAIT_S)
                raise KeyboardInterrupt

        with store.group() as group:
            producer.send(b"a")
            producer.send(b"b")
            monkeypatch.setattr(WriterGate, "leave", leave_and_stop)
            with pytest.raises(KeyboardInterrupt):
                group.flush()
            resolved.set()
            writer.join(WAIT_S)
        assert group.durable == 2
        assert values(store) == [b"a", b"b", b"other"]

    def test_an_interrupted_flush_within_the_block_goes_on(self, store: Store, producer: Producer) -> None:
        """The end of the block does the rest, once."""

        with store.group() as group:
            producer.send(b"a")
            producer.send(b"b")
            interrupt_once("environment.after_commit")
            with suppress(KeyboardInterrupt):
                group.flush()
            producer.send(b"c")
        assert values(store) == [b"a", b"b", b"c"]
        assert group.durable == 3

    def test_an_interrupt_behind_a_durable_refusal_is_resolved(
        self, store: Store, table: Table, producer: Producer
    ) -> None:
        """The refused transaction has one record: it is told as refused, and not judged again."""

        def read_later() -> None:
            with store.transaction() as later:
                table.get(b"k", txn=later)

        with ends_in(GroupRefused), store.group() as group:
            txn = store.transaction()
            table.put(b"k", b"v", txn=txn)
            in_thread(read_later)
            txn.commit()
            producer.send(b"behind")
            interrupt_once("environment.after_commit")
            with pytest.raises(KeyboardInterrupt):
                group.flush()
        (refused,) = group.refused
        assert isinstance(refused.error, WriteTooOld)
        assert txn.state is TransactionState.ABORTED
        ended = store.reports.list_transactions(ended=True)
        assert [row.state for row in ended].count(TransactionState.ABORTED) == 1
        assert values(store) == [b"behind"]
        assert store.maintenance.verify_store(full=True) == []

    def test_a_disk_that_fails_in_the_commit_leaves_the_outcome_unknown(
        self, store: Store, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of every end of the batch; none is reported as durable."""
        writer = store.connection.environment.writer

        def fail(*commit: object) -> None:
            raise OutcomeUnknown("the disk failed during the commit")

        monkeypatch.setattr(writer, "_commit", fail)
        with ends_in(OutcomeUnknown), store.group() as group:
            producer.send(b"a")
            with store.transaction() as txn:
                producer.send(b"b", txn=txn)
        monkeypatch.undo()
        assert group.durable == 0
        assert [type(refused.error) for refused in group.refused] == [OutcomeUnknown] * 2
        sent, ended = [str(refused.error.hint) for refused in group.refused]
        assert "same sequence id" in sent and "transaction" not in sent
        assert ended == sent
