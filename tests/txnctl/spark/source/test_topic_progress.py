"""Topic progress: `txnctl/spark/source/topic_progress.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from storage import Store
from storage.errors import MessageNotFound, TopicNotFound
from tests.row_json import row_json
from tests.txnctl.spark.offload_steps import rows
from tests.txnctl.spark.source.topic_stream_steps import reader, send


def test_limits_are_shared_among_topics_and_what_one_leaves_goes_to_the_others(
    store: Store, path: str
) -> None:
    """10 messages of two topics: 2 of the small one, and 8 of the large one."""
    for topic, count in (("small", 2), ("large", 30)):
        store.create_topic(topic)
        send(store, topic, *[b"x"] * count)
    stream = reader(path, topics="small,large", startingPosition="earliest", maxMessagesPerTrigger="10")
    assert stream.getDefaultReadLimit() == ReadMaxRows(10)
    assert stream.latestOffset(stream.initialOffset(), ReadMaxRows(10)) == {"large": "1:7", "small": "1:1"}
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable()) == {
        "large": "1:29",
        "small": "1:1",
    }


def test_bytes_bound_a_batch_too(store: Store, path: str) -> None:
    """At least one entry is read, however small the bound."""
    store.create_topic("t")
    send(store, "t", *[b"x" * 1000] * 4)
    stream = reader(path, startingPosition="earliest", maxBytesPerTrigger="2500")
    assert stream.getDefaultReadLimit() == ReadMaxBytes(2500)
    assert stream.latestOffset({"t": "1:-1"}, ReadMaxBytes(2500)) == {"t": "1:1"}
    assert stream.latestOffset({"t": "1:-1"}, ReadMaxBytes(1)) == {"t": "1:0"}
    both = reader(path, startingPosition="earliest", maxBytesPerTrigger="2500", maxMessagesPerTrigger="3")
    assert both.latestOffset({"t": "1:-1"}, both.getDefaultReadLimit()) == {"t": "1:1"}


@pytest.mark.parametrize(("level", "behind"), [("READ_COMMITTED", 1), ("READ_UNCOMMITTED", 6)])
def test_the_lag_is_what_a_reader_of_that_level_has_before_it(
    store: Store, path: str, level: str, behind: int
) -> None:
    """Aborted messages, and those behind an open transaction, are nothing that READ_COMMITTED could read."""
    store.create_topic("t")
    stream = reader(path, startingPosition="earliest", isolationLevel=level, maxMessagesPerTrigger="1")
    send(store, "t", b"read")
    aborted, held = store.begin_transaction(), store.begin_transaction()
    with store.create_producer("t") as producer:
        producer.send_batch([b"never", b"never"], txn=aborted)
        producer.send(b"waits")
        store.admin.transactions.abort_transaction(aborted)
        producer.send_batch([b"open", b"open"], txn=held)
        producer.send(b"blocked")
    assert stream.latestOffset(stream.initialOffset(), ReadMaxRows(1)) == {"t": "1:0"}
    assert stream.reportLatestOffset()["t"]["behind"] == behind
    store.admin.transactions.abort_transaction(held)


def test_a_topic_that_was_created_again_ends_the_stream(store: Store, path: str) -> None:
    """In the process that saw the old one, and after a restart from a checkpoint that knows it."""
    store.create_topic("t")
    send(store, "t", b"1")
    stream = reader(path, startingPosition="earliest")
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    store.admin.topics.delete_topic("t", force=True)
    with pytest.raises(TopicNotFound, match="there is no topic t"):
        stream.latestOffset(end, ReadAllAvailable())
    store.create_topic("t")
    send(store, "t", b"2", b"3")
    for each in (stream, reader(path, startingPosition="earliest")):
        with pytest.raises(TopicNotFound, match="deleted and created again"):
            each.latestOffset(end, ReadAllAvailable())
        with pytest.raises(TopicNotFound, match="deleted and created again"):
            each.partitions({"t": "1:-1"}, end)


def test_a_stream_loses_nothing_to_retention_silently(store: Store, path: str) -> None:
    """One that has read all that was trimmed goes on; one that has not ends, in plan and offset."""
    store.create_topic("t", ledger_entries_max=2)
    send(store, "t", b"1", b"2", b"3")
    stream = reader(path, startingPosition="earliest")
    begin = stream.initialOffset()
    end = stream.latestOffset(begin, ReadAllAvailable())
    store.admin.topics.set_retention("t", time_ms=0)
    assert store.admin.topics.trim_topic("t").effects.first_position == (3, 0)
    send(store, "t", b"4")
    for again in (stream, reader(path, startingPosition="earliest")):
        assert again.latestOffset(end, ReadAllAvailable()) == {"t": "3:0"}
        with pytest.raises(
            MessageNotFound, match="after 1:-1 were trimmed, at most 3; the first one left is at 3:0"
        ):
            again.latestOffset(begin, ReadAllAvailable())
        with pytest.raises(MessageNotFound, match="after 1:-1 were trimmed"):
            again.partitions(begin, end)


@pytest.mark.parametrize("named", [{}, {"subscription": "s"}])
def test_a_stream_may_go_on_behind_what_is_lost(
    store: Store, path: str, named: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """With failOnDataLoss false, once with a warning that counts; with a subscription that an operator moved too."""
    store.create_topic("t", ledger_entries_max=2)
    send(store, "t", b"1", b"2", b"3")
    stream = reader(path, startingPosition="earliest", failOnDataLoss="false", **named)
    begin = stream.initialOffset()
    store.admin.topics.truncate_topic("t")
    send(store, "t", b"4")
    with pytest.raises(MessageNotFound, match="at most 3"):
        reader(path, startingPosition="earliest", **named).latestOffset(begin, ReadAllAvailable())
    for _ in range(2):
        end = stream.latestOffset(begin, ReadAllAvailable())
    assert end == {"t": "3:0"}
    got = [
        value
        for part in stream.partitions(begin, end)
        for batch in stream.read(part)
        for value in batch["value"].to_pylist()
    ]
    assert got == [b"4"]
    warnings = [record.getMessage() for record in caplog.records if record.name == "txnctl.spark"]
    assert len(warnings) == 1
    assert "at most 3; the first one left is at 3:0; the read goes on there" in warnings[0]


def test_a_stream_that_starts_in_what_is_lost_is_told(store: Store, path: str) -> None:
    store.create_topic("t", ledger_entries_max=2)
    send(store, "t", b"1", b"2", b"3")
    store.admin.topics.truncate_topic("t")
    for start in ({"startingPosition": "1:1"}, {"startingTimestamp": "2020-01-01"}):
        with pytest.raises(MessageNotFound, match="the first one left is at 3:0"):
            reader(path, **start).initialOffset()
        assert reader(path, failOnDataLoss="false", **start).initialOffset() == {"t": "3:-1"}
    assert reader(path, startingPosition="earliest").initialOffset() == {"t": "3:-1"}


def test_a_busy_store_does_not_end_a_stream(store: Store, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor moves with a later commit instead."""
    store.create_topic("t")
    stream = reader(path, subscription="s")
    stream.initialOffset()
    send(store, "t", b"1")
    from storage import Consumer
    from storage.errors import WriterBusy

    def busy(*_: object) -> None:
        raise WriterBusy("the writer gate is held")

    with monkeypatch.context() as patched:
        patched.setattr(Consumer, "acknowledge_through", busy)
        stream.commit({"t": "1:0"})
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 1
    stream.commit({"t": "1:0"})
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0


@pytest.fixture
def lives(store: Store, path: str, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A store restored as of 1, 2; the offset of a stream that has read 3 of the original, and the restored store's 4, 5."""
    store.create_topic("t", ledger_entries_max=2)
    store.create_topic("empty")
    send(store, "t", b"1", b"2")
    store.maintenance.backup_store(tmp_path / "backup")
    send(store, "t", b"3")
    stream = reader(path, topics="t,empty", startingPosition="earliest")
    offset = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    with Store.open(tmp_path / "restored") as restored:
        send(restored, "t", b"4", b"5")
        send(restored, "empty", b"0")
    return str(tmp_path / "restored"), offset


@pytest.mark.parametrize("more", [{}, {"subscription": "s"}])
def test_a_checkpoint_from_behind_the_backup_is_refused_by_the_restored_store(
    lives: tuple[str, dict[str, str]], more: dict[str, str]
) -> None:
    """New messages at the positions that it has read would be skipped in silence."""
    path, offset = lives
    stream = reader(path, topics="t,empty", startingPosition="earliest", **more)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    for use in (
        lambda: stream.latestOffset(offset, ReadAllAvailable()),
        lambda: stream.partitions(offset, end),
        lambda: reader(path, startingPosition=offset["t"]).initialOffset(),
    ):
        with pytest.raises(MessageNotFound, match="this topic never had"):
            use()


@pytest.mark.parametrize("more", [{}, {"subscription": "s"}])
def test_a_checkpoint_of_before_the_backup_goes_on_in_the_restored_store(
    lives: tuple[str, dict[str, str]], more: dict[str, str]
) -> None:
    """At the end of the backup, within it, and in a topic that was empty then."""
    path, _ = lives
    for at, values in (("1:1", [b"0", b"4", b"5"]), ("1:0", [b"0", b"2", b"4", b"5"])):
        stream = reader(path, topics="t,empty", startingPosition="earliest", **more)
        offset = {"empty": "1:-1", "t": at}
        end = stream.latestOffset(offset, ReadAllAvailable())
        found = rows(list(stream.partitions(offset, end)))  # type: ignore[arg-type]
        assert sorted(row["value"] for row in found) == values


def test_a_checkpoint_from_behind_the_backup_goes_on_where_loss_is_allowed(
    lives: tuple[str, dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """At the first message of the new life, with a warning."""
    path, offset = lives
    stream = reader(path, topics="t,empty", startingPosition="earliest", failOnDataLoss="false")
    end = stream.latestOffset(offset, ReadAllAvailable())
    found = rows(list(stream.partitions(offset, end)))  # type: ignore[arg-type]
    assert sorted(row["value"] for row in found) == [b"0", b"4", b"5"]
    assert "this topic never had" in caplog.text
