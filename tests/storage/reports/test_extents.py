"""How far topics reach, and how far one gets with so many messages and bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from storage import IsolationLevel, Store, TxnID
from storage.errors import InvalidValue, MessageNotFound, TopicNotFound, TransactionConflict
from storage.reports import extents
from storage.values.position import Position
from storage.values.txn_state import TransactionState
from tests.model_runs import examples
from tests.row_json import row_json


def test_extents_are_of_one_moment_and_say_where_both_levels_end(store: Store) -> None:
    """Behind an open transaction READ_COMMITTED ends before it; READ_UNCOMMITTED at the last entry."""
    store.create_topic("a", ledger_entries_max=2)
    producer = store.create_producer("a")
    for value in (b"1", b"2", b"3"):
        producer.send(value)
    txn = store.begin_transaction()
    producer.send(b"open", txn=txn)
    (extent,) = store.reports.topic_extents(["a"])
    assert extent.before == Position(1, -1)
    assert extent.bound(IsolationLevel.READ_COMMITTED) == Position(2, 0)
    assert extent.bound(IsolationLevel.READ_UNCOMMITTED) == Position(2, 1)
    assert [str(TxnID(number)) for number in extent.open_txns] == [str(txn)]
    assert [(each.ledger_id, each.entries) for each in extent.ledgers] == [(1, 2), (2, 2)]
    assert not extent.is_trimmed


def test_without_names_all_topics_are_meant(store: Store) -> None:
    """In the order of their full names; a name that is not there is an error."""
    for name in ("b", "a"):
        store.create_topic(name)
    assert [each.topic.rsplit("/", 1)[1] for each in store.reports.topic_extents()] == ["a", "b", "t"]
    with pytest.raises(TopicNotFound):
        store.reports.topic_extents(["a", "c"])


def test_a_topic_created_again_is_another(store: Store) -> None:
    """Its id is new, and it begins after all positions of the old one."""
    store.create_topic("a")
    store.create_producer("a").send(b"1")
    (before,) = store.reports.topic_extents(["a"])
    store.admin.topics.delete_topic("a", force=True)
    store.create_topic("a")
    (after,) = store.reports.topic_extents(["a"])
    assert after.topic_id != before.topic_id
    assert after.before > before.last_confirmed


@given(
    batches=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    limit=st.integers(1, 30),
    per_ledger=st.integers(1, 4),
)
@settings(max_examples=examples(25))
def test_reach_takes_as_many_whole_entries_as_fit_and_at_least_one(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int], limit: int, per_ledger: int
) -> None:
    """From every position on: one entry more would be too many, and going on from there ends at the end."""
    path = str(tmp_path_factory.mktemp("reach") / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("a", ledger_entries_max=per_ledger)
        producer = store.create_producer("a")
        for count in batches:
            producer.send_batch([b"x"] * count)
        (extent,) = store.reports.topic_extents(["a"])
        sizes = {(entry.ledger_id, entry.entry_id): entry.count for entry in store.reader("a").entries()}
        after = extent.before
        while after < extent.last_confirmed:
            rest = [count for position, count in sizes.items() if position > after]
            taken = 1
            while taken < len(rest) and sum(rest[: taken + 1]) <= limit:
                taken += 1
            reached = store.reports.furthest_position("a", after, extent.last_confirmed, max_messages=limit)
            between = [count for position, count in sizes.items() if after < position <= reached.position]
            assert between == rest[:taken]
            assert reached.messages == sum(between)
            after = reached.position
        assert store.reports.furthest_position("a", after, extent.last_confirmed, max_messages=limit) == (
            after,
            0,
            0,
        )


def test_reach_goes_by_bytes_too_and_no_further_than_it_is_told(store: Store) -> None:
    """Whichever of messages and bytes is used up first; `through` bounds both."""
    store.create_topic("a")
    producer = store.create_producer("a")
    for _ in range(10):
        producer.send(b"x" * 1000)
    (extent,) = store.reports.topic_extents(["a"])
    assert store.reports.furthest_position(
        "a", extent.before, extent.last_confirmed, max_bytes=3500
    ).position == Position(1, 2)
    assert store.reports.furthest_position(
        "a", extent.before, extent.last_confirmed, max_messages=2, max_bytes=3500
    ).position == (1, 1)
    assert store.reports.furthest_position(
        "a", extent.before, Position(1, 0), max_bytes=3500
    ).position == Position(1, 0)
    assert (
        store.reports.furthest_position("a", extent.before, extent.last_confirmed).position
        == extent.last_confirmed
    )


def test_acknowledge_through_passes_markers_and_aborted_messages_and_never_goes_back(store: Store) -> None:
    """A position of any entry will do; what is beyond maxReadPosition is left."""
    store.create_topic("a")
    store.admin.subscriptions.create_subscription("a", "s")
    producer = store.create_producer("a")
    producer.send(b"1")
    aborted = store.begin_transaction()
    producer.send(b"2", txn=aborted)
    store.admin.transactions.abort_transaction(aborted)
    last = store.reports.topic_extents(["a"])[0].last_confirmed
    assert row_json(store.admin.acknowledgements.acknowledge_through("a", "s", last))[
        "markDeletePosition"
    ] == str(last)
    assert row_json(store.admin.acknowledgements.acknowledge_through("a", "s", Position(1, 0)))[
        "markDeletePosition"
    ] == str(last)
    held = store.begin_transaction()
    producer.send(b"3", txn=held)
    assert row_json(store.admin.acknowledgements.acknowledge_through("a", "s", Position(1, 9)))[
        "markDeletePosition"
    ] == str(last)


def test_acknowledge_through_refuses_what_is_no_position_or_is_held(store: Store) -> None:
    """An entry that a closed ledger does not have; what an open transaction has pending; a shared subscription."""
    store.create_topic("a", ledger_entries_max=2)
    for name, kind in (("s", "Exclusive"), ("shared", "Shared")):
        store.admin.subscriptions.create_subscription("a", name, subscription_type=kind)  # type: ignore[arg-type]
    producer = store.create_producer("a")
    first = producer.send(b"1")
    for _ in range(3):
        producer.send(b"more")
    with pytest.raises(MessageNotFound):
        store.admin.acknowledgements.acknowledge_through("a", "s", Position(1, 7))
    with pytest.raises(InvalidValue, match="is Shared"):
        store.admin.acknowledgements.acknowledge_through("a", "shared", Position(1, 1))
    store.admin.acknowledgements.acknowledge_messages("a", "s", [first], txn=store.begin_transaction())
    with pytest.raises(TransactionConflict, match="covers what is pending"):
        store.admin.acknowledgements.acknowledge_through("a", "s", Position(1, 1))
    assert row_json(store.reports.subscription_stats("a", "s"))["markDeletePosition"] == "1:-1"


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 100])
def test_split_cuts_a_table_into_parts_of_equal_length(store: Store, parts: int) -> None:
    """Together they are the table; none is longer than the others by more than one."""
    store.create_table("t")
    table = store.table("t")
    table.import_rows((b"%03d" % number, b"v") for number in range(50))
    edges = [b"", *table.split(parts), None]
    pieces = [list(table.scan(start=a or b"", end=b)) for a, b in pairwise(edges)]
    assert [row.key for piece in pieces for row in piece] == [b"%03d" % number for number in range(50)]
    assert max(map(len, pieces)) == -(-50 // parts)


def test_an_empty_table_is_one_part(store: Store) -> None:
    """There is no key to cut it at."""
    store.create_table("t")
    assert store.table("t").split(4) == []


@given(data=st.data())
@settings(max_examples=examples(25))
def test_messages_between_two_positions_are_those_that_a_reader_is_handed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """At both levels, whatever was aborted or is open, wherever the range begins and ends."""
    path = str(tmp_path_factory.mktemp("between") / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("a", ledger_entries_max=3)
        producer = store.create_producer("a")
        txns = [store.begin_transaction() for _ in range(3)]
        for _ in range(data.draw(st.integers(1, 12))):
            txn = data.draw(st.sampled_from([None, *txns]))
            producer.send_batch([b"x"] * data.draw(st.integers(1, 4)), txn=txn)
        store.admin.transactions.abort_transaction(txns[0])
        if data.draw(st.booleans()):
            store.commit_transaction(txns[1])
        (extent,) = store.reports.topic_extents(["a"])
        everything = store.reader("a", isolation_level=IsolationLevel.READ_UNCOMMITTED).entries()
        places = [extent.before, *(entry.position for entry in everything), extent.last_confirmed]
        for level in IsolationLevel:
            handed = [(e.position, e.count) for e in store.reader("a", isolation_level=level).entries()]
            for after in places:
                for through in places:
                    wanted = sum(count for at, count in handed if after < at <= through)
                    assert store.reports.count_messages_between("a", after, through, level) == wanted


class TestWholeTransactions:
    """The end of a piece is moved to a position that cuts no transaction."""

    def test_a_transaction_stays_together(self, store: Store) -> None:
        """The piece grows up to its last message; before its first message it may end."""
        store.create_topic("whole")
        txn = store.begin_transaction()
        with store.create_producer("whole") as producer:
            producer.send(b"plain")  # 1:0
            producer.send(b"first", txn=txn)  # 1:1
            producer.send(b"plain")  # 1:2
            producer.send(b"second", txn=txn)  # 1:3
            store.commit_transaction(txn)  # 1:4
            producer.send(b"plain")  # 1:5
        reports, end = store.reports, Position(1, 5)
        ends = [
            reports.whole_transactions("whole", Position(1, -1), Position(1, at), end) for at in range(-1, 6)
        ]
        assert ends == [Position(1, at) for at in (-1, 0, 3, 3, 3, 4, 5)]
        held_back = reports.whole_transactions("whole", Position(1, -1), Position(1, 2), Position(1, 2))
        assert held_back == Position(1, 0)
        nothing_yet = reports.whole_transactions("whole", Position(1, 0), Position(1, 2), Position(1, 2))
        assert nothing_yet == Position(1, 0)

    def test_a_transaction_that_goes_on_for_long_is_cut(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where the piece cannot end before it either."""
        monkeypatch.setattr(extents, "TOGETHER_ENTRIES_MAX", 3)
        store.create_topic("whole")
        txn = store.begin_transaction()
        with store.create_producer("whole") as producer:
            for _ in range(8):
                producer.send(b"x", txn=txn)
            store.commit_transaction(txn)
        before, end = Position(1, -1), Position(1, 8)
        assert store.reports.whole_transactions("whole", before, Position(1, 2), end) == Position(1, 2)
        assert store.reports.whole_transactions("whole", before, Position(1, 5), end) == Position(1, 7)


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("mmmca")), min_size=1, max_size=25),
    at=st.integers(0, 30),
)
@settings(max_examples=examples(25))
def test_no_committed_transaction_is_on_both_sides(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]], at: int
) -> None:
    """Random sends of three transactions and of none, commits and aborts, the end wanted anywhere."""
    path = str(tmp_path_factory.mktemp("whole") / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("a")
        producer = store.create_producer("a")
        txns = {number: store.begin_transaction() for number in (1, 2, 3)}
        for number, step in steps:
            if step == "m" or not number:
                producer.send(b"x", txn=txns.get(number))
                continue
            if step == "c":
                store.commit_transaction(txns[number])
            else:
                store.admin.transactions.abort_transaction(txns[number])
            txns[number] = store.begin_transaction()
        before, through = Position(1, -1), store.reports.topic_extents(["a"])[0].max_read
        end = store.reports.whole_transactions("a", before, min(Position(1, at), through), through)
        assert before <= end <= through
        sides = {
            (message.txn_id, message.message_id.position <= end)
            for message in store.reader("a", isolation_level=IsolationLevel.READ_UNCOMMITTED)
            if message.txn_state is TransactionState.COMMITTED
        }
        assert len({txn for txn, _ in sides}) == len(sides)
