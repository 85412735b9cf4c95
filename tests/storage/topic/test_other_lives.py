"""Positions that a topic never had: `storage/topic/other_lives.py`, as readers bring them from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import EARLIEST, MessageId, Position, Store, SubscriptionType
from storage.errors import MessageNotFound
from storage.process.clock import SYSTEM_CLOCK, ManualClock

Kept = Position | MessageId
Use = Callable[[Store, str, Kept], object]


def read(store: Store, topic: str, start: Kept) -> list[bytes]:
    with store.reader(topic, start=start) as reader:
        return [message.value for message in reader]


def subscribe(store: Store, topic: str, start: Kept) -> None:
    store.subscribe(topic, "new", initial_position=start).close()


def seek(store: Store, topic: str, start: Kept) -> None:
    store.admin.subscriptions.seek_subscription(topic, "s", start)


def list_log(store: Store, topic: str, start: Kept) -> None:
    list(store.reports.topic_log(topic, start))


def acknowledge(store: Store, topic: str, start: Kept) -> None:
    with store.subscribe(topic, "s") as consumer:
        consumer.acknowledge(MessageId(start[0], start[1]))


def acknowledge_all(store: Store, topic: str, start: Kept) -> None:
    with store.subscribe(topic, "s") as consumer:
        consumer.acknowledge_cumulative(MessageId(start[0], start[1]))


USES: list[Use] = [read, subscribe, seek, list_log, acknowledge, acknowledge_all]


def send(store: Store, topic: str, *values: bytes) -> list[MessageId]:
    with store.create_producer(topic) as producer:
        return [producer.send(value) for value in values]


class Lives:
    """A store, and its restored copy; the last message id of before the backup, and ids of the original behind it."""

    def __init__(self, original: Store, restored: Store, before: MessageId, lost: list[MessageId]) -> None:
        self.original, self.restored, self.before, self.lost = original, restored, before, lost


@pytest.fixture
def lives(store: Store, clock: ManualClock, tmp_path: Path) -> Lives:
    """The backup has a, b; the original goes on with c, d and, in the next ledger, e; its copy with x, y, z."""
    store.create_topic("log", ledger_entries_max=4)
    store.subscribe(
        "log", "s", initial_position=EARLIEST, subscription_type=SubscriptionType.EXCLUSIVE
    ).close()
    before = send(store, "log", b"a", b"b")[-1]
    store.maintenance.backup_store(tmp_path / "backup")
    lost = send(store, "log", b"c", b"d", b"e")
    clock.advance(1)
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    restored = Store.open(tmp_path / "restored", clock=clock)
    return Lives(store, restored, before, lost)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("number", range(3))
def test_a_message_id_that_the_original_gave_behind_the_backup_is_refused(
    lives: Lives, use: Use, number: int
) -> None:
    """Right after the restore and behind later messages; the first position of the new life is named."""
    with lives.restored as store:
        for values in ((), (b"x", b"y", b"z")):
            send(store, "log", *values)
            with pytest.raises(MessageNotFound):
                use(store, "log", lives.lost[number])
        assert store.maintenance.verify_store(full=True) == []


def test_a_position_of_before_the_backup_goes_on_behind_the_backup(lives: Lives) -> None:
    """Every message comes once; no id is that of a message of the original."""
    with lives.restored as store:
        own = send(store, "log", *[b"%d" % number for number in range(9)])
        assert not {*own} & {*lives.lost}
        assert own[0] > max(lives.lost)
        assert read(store, "log", lives.before) == [b"b", *[b"%d" % number for number in range(9)]]
        assert read(store, "log", own[-1]) == [b"8"]
        with store.subscribe("log", "s") as consumer:
            assert [consumer.receive(0).value for _ in range(11)][:3] == [b"a", b"b", b"0"]
            consumer.acknowledge_cumulative(own[-1])
        assert store.maintenance.verify_store(full=True) == []


def restore(store: Store, place: Path, clock: ManualClock) -> Store:
    """A store restored from a backup of now."""
    store.maintenance.backup_store(f"{place}-backup")
    clock.advance(1)
    Store.restore(f"{place}-backup", place)
    return Store.open(place, clock=clock)


@pytest.mark.parametrize("kept", [Position(1, 0), MessageId(1, 1), Position(2, 0)])
def test_a_topic_that_was_empty_in_the_backup_gives_no_position_again(
    store: Store, clock: ManualClock, tmp_path: Path, kept: Kept
) -> None:
    """Neither does one that the original created behind the backup, nor one that was deleted before."""
    store.create_topic("deleted")
    send(store, "deleted", b"0")
    store.admin.topics.delete_topic("deleted")
    with restore(store, tmp_path / "restored", clock) as restored:
        for topic in ("t", "later", "deleted"):
            for each in (store, restored):
                each.create_producer(topic, create_topic=True).close()
            lost, own = send(store, topic, b"x", b"y"), send(restored, topic, b"a", b"b")
            assert not {*lost} & {*own}
            with pytest.raises(MessageNotFound, match="never had") as refused:
                read(restored, topic, kept)
            first = Position.parse(str(refused.value.details["first_position"]))
            assert first == own[0].position
            assert read(restored, topic, first) == [b"a", b"b"]
        assert restored.maintenance.verify_store(full=True) == []


def test_two_restores_of_one_backup_give_different_positions(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    """And have different identities, so that files of both lie apart."""
    send(store, "t", b"a")
    store.maintenance.backup_store(tmp_path / "backup")
    ids, identities = [], []
    for name in ("one", "two"):
        clock.advance(1)
        Store.restore(tmp_path / "backup", tmp_path / name)
        with Store.open(tmp_path / name, clock=clock) as restored:
            ids.append(send(restored, "t", b"b"))
            identities.append(restored.identity)
            if name == "two":
                with pytest.raises(MessageNotFound):
                    read(restored, "t", ids[0][0])
    assert ids[0] != ids[1]
    assert len({store.identity, *identities}) == 3


def test_a_position_of_a_deleted_topic_is_refused_by_a_later_one_of_the_name(store: Store) -> None:
    """As the ledger ids go on; the first position of the later topic is named."""
    store.subscribe("t", "s").close()
    kept = send(store, "t", b"a", b"b")
    store.admin.topics.delete_topic("t", force=True)
    store.create_topic("t")
    store.subscribe("t", "s").close()
    own = send(store, "t", b"c")
    for use in USES:
        with pytest.raises(MessageNotFound):
            use(store, "t", kept[1])
    with pytest.raises(MessageNotFound, match="begin at 2:0"):
        read(store, "t", kept[1])
    assert read(store, "t", own[0]) == [b"c"]


def test_a_kept_position_is_refused_behind_trimming_too(lives: Lives) -> None:
    """The last trimmed ledger is that of the backup; the first one left is of the new life, and then a later one."""
    with lives.restored as store:
        own = send(store, "log", *[b"%d" % number for number in range(9)])
        with store.subscribe("log", "s") as consumer:
            consumer.receive_batch(100, 0)
            consumer.acknowledge_cumulative(own[0])
            store.admin.topics.set_retention("log", time_ms=0)
            assert store.admin.topics.trim_topic("log").effects.first_position == own[0].position
            assert store.admin.topics.trim_topic("log").effects.trimmed.ledgers == 0
            for kept in lives.lost:
                with pytest.raises(MessageNotFound, match="never had"):
                    read(store, "log", kept)
            with pytest.raises(MessageNotFound, match="trimmed"):
                read(store, "log", Position(1, 0))
            assert store.maintenance.verify_store(full=True) == []
            consumer.acknowledge_cumulative(own[-1])
        store.admin.topics.trim_topic("log")
        for kept in lives.lost:
            with pytest.raises(MessageNotFound, match="trimmed"):
                read(store, "log", kept)
        assert store.maintenance.verify_store(full=True) == []


def test_an_abort_by_the_restore_stands_in_the_new_life(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    """The marker has no position that the original gives to a message."""
    txn = store.begin_transaction()
    producer = store.create_producer("t")
    producer.send(b"plain")
    producer.send(b"open", txn=txn)
    with restore(store, tmp_path / "restored", clock) as restored:
        lost = send(store, "t", b"lost")[0]
        marker = restored.reports.topic_extents(["t"])[0].last_confirmed
        assert marker > lost.position
        assert read(restored, "t", Position(1, 0)) == [b"plain"]
        with pytest.raises(MessageNotFound, match="never had"):
            read(restored, "t", lost)


def test_the_compacted_view_goes_on_behind_the_backup(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    """View and tail of both lives as one; a position that was lost is refused there too."""
    producer = store.create_producer("t")
    for number in range(4):
        producer.send(b"%d" % number, key=b"k%d" % (number % 2))
    store.admin.topics.compact_topic("t")
    with restore(store, tmp_path / "restored", clock) as restored:
        lost = producer.send(b"lost", key=b"k0")
        with restored.create_producer("t") as own:
            own.send(b"4", key=b"k0")
        for _ in range(2):
            with restored.reader("t", start=EARLIEST, read_compacted=True) as reader:
                assert sorted(message.value for message in reader)[-2:] == [b"3", b"4"]
            with pytest.raises(MessageNotFound, match="never had"):
                restored.reader("t", start=lost, read_compacted=True)
            restored.admin.topics.compact_topic("t")
        assert restored.maintenance.verify_store(full=True) == []


def test_sequence_ids_count_by_the_messages_of_the_new_life(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    """An id of a lost message is free, and one of before the backup is a duplicate."""
    producer = store.create_producer("t", producer_name="p")
    producer.send(b"1", sequence_id=1)
    with restore(store, tmp_path / "restored", clock) as restored:
        producer.send(b"2", sequence_id=2)
        with restored.create_producer("t", producer_name="p") as own:
            for number in (1, 2, 3):
                own.send(b"%d" % number, sequence_id=number)
        assert read(restored, "t", Position(1, 0)) == [b"1", b"2", b"3"]


def test_the_extent_of_a_topic_tells_the_same(lives: Lives) -> None:
    """For a plan without the store: of every position near the ledgers of both lives."""
    with lives.restored as store:
        own = send(store, "log", *[b"%d" % number for number in range(9)])
        (extent,) = store.reports.topic_extents(["log"])
        ledgers = [1, 2, 3, own[0].ledger_id - 1, own[0].ledger_id, own[-1].ledger_id - 1, own[-1].ledger_id]
        for position in [Position(ledger, entry) for ledger in ledgers for entry in range(6)]:
            try:
                read(store, "log", position)
                is_other = False
            except MessageNotFound:
                is_other = True
            assert (extent.first_after_other_life(position) is not None) is is_other, position
        assert extent.begin_behind(lives.before.position) == own[0].position


@pytest.mark.parametrize("limits", [{"time_ms": 0}, {"time_ms": 86_400_000}, {"size": 0}])
def test_a_topic_that_was_empty_then_has_limits_as_before(
    store: Store, clock: ManualClock, tmp_path: Path, limits: dict[str, int]
) -> None:
    """It has no ledger between the two lives that could go; later ledgers go as anywhere."""
    store.create_topic("empty", ledger_entries_max=1)
    store.create_topic("other")
    store.admin.topics.set_retention("empty", **limits)
    store.maintenance.backup_store(tmp_path / "backup")
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    # A restore takes the time of the machine.
    clock.wall_now_ns = SYSTEM_CLOCK.wall_ns() + 1_000_000_000
    with Store.open(tmp_path / "restored", clock=clock) as restored:
        send(restored, "other", b"1")
        restored.maintenance.collect_garbage()
        restored.admin.topics.truncate_topic("empty")
        ids = send(restored, "empty", b"1", b"2", b"3")
        clock.advance(2 * 86_400)
        restored.maintenance.collect_garbage(trust_clock=True)
        kept = read(restored, "empty", EARLIEST)
        assert kept in ([], [b"3"])
        assert send(restored, "empty", b"4")[0] > ids[-1]
        assert restored.maintenance.verify_store(full=True) == []


def test_two_restores_of_one_backup_number_their_transactions_apart(store: Store, tmp_path: Path) -> None:
    """A client of the first must not end a transaction of the second."""
    store.maintenance.backup_store(tmp_path / "backup")
    ids = []
    for name in ("first", "second"):
        Store.restore(tmp_path / "backup", tmp_path / name)
        with Store.open(tmp_path / name) as restored:
            ids.append({restored.begin_transaction() for _ in range(10)})
    assert len(ids[0] | ids[1]) == 20
