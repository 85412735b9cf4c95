"""Rule 10 of the command line: the numbers of a dry run are those of the real one, over random states.

Several transactions over two topics, acknowledgements alone and cumulative on subscriptions of all types and levels,
keys of a table, producers of their own; then one is aborted, first dry, then in earnest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from storage.admin.abort import TopicAborted, TouchedNames
from storage.errors import ProducerFenced, TransactionChanged, TransactionNotOpen
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from tests.model_runs import examples
from tests.row_json import row_json
from tests.storage.growth_steps import Scene, other_tables, other_topics
from tests.storage.lmdb_operations import counted
from tests.storage.reports.stuck import Script, play, scripts


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all examples of this module: each has topics of its own. It is sound at the end."""
    place, clock = tmp_path_factory.mktemp("abort") / "store", ManualClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as opened:
        opened.create_table("balances")
        yield opened
        assert opened.maintenance.verify_store(full=True) == []


def state(store: Store, topics: list[str]) -> dict[str, Any]:
    """All that reports tell of the topics and of who has transactions there."""
    return {
        "topics": [row_json(store.reports.topic_stats(topic)) for topic in topics],
        "timelines": [row_json(store.reports.topic_timeline(topic)) for topic in topics],
        "open": [
            row_json(store.reports.explain_transaction(row["txnId"]))
            for row in row_json(store.reports.list_transactions())
        ],
    }


def checked(effects: list[dict[str, Any]], before: dict[str, Any], after: dict[str, Any]) -> None:
    """What the effects say is what the reports show, before and after."""
    for effect in effects:
        if effect["kind"] == "table":
            continue
        then, now = (
            next(topic for topic in found["topics"] if topic["topic"] == effect["topic"])
            for found in (before, after)
        )
        if effect["kind"] == "subscription":
            name = effect["subscription"]
            pending = [found["subscriptions"][name]["pending"] for found in (then, now)]
            assert effect["messages"] == pending[0] - pending[1]
            continue
        assert effect["messages"] == then["uncommittedMessages"] - now["uncommittedMessages"]
        assert effect["messages"] == now["abortedMessages"] - then["abortedMessages"]
        assert (effect["maxReadPositionBefore"], effect["maxReadPositionAfter"]) == (
            then["maxReadPosition"],
            now["maxReadPosition"],
        )
        for name, counts in effect["unblocks"].items():
            mine = [found["subscriptions"][name] for found in (then, now)]
            assert [counts["visibleBefore"], counts["visibleAfter"]] == [row["visible"] for row in mine]
            assert [counts["blockedBefore"], counts["blockedAfter"]] == [row["blocked"] for row in mine]
        following, blocker = effect["blockedNext"], now["blockedBy"]
        assert (following and following["txnId"]) == (blocker and blocker["txnId"])


@settings(max_examples=examples(40))
@given(scripts, scripts, st.lists(st.integers(0, 3), max_size=6), st.integers(0, 3))
def test_dry_run_numbers_are_the_real_ones(
    lasting: Store, script: Script, second: Script, keys: list[int], which: int
) -> None:
    """And what they say is what the reports show before and after; the dry run itself changes nothing."""
    for row in row_json(lasting.reports.list_transactions()):
        lasting.admin.transactions.abort_transaction(row["txnId"])
    topics = [f"t{len(lasting.topics())}", f"t{len(lasting.topics()) + 1}"]
    txns = play(lasting, topics[0], script)
    play(lasting, topics[1], second, txns)
    table = lasting.table("balances")
    free = [
        key for key in keys if not row_json(lasting.reports.show_transaction(txns[key]))["acknowledgements"]
    ]
    for number, key in enumerate(free):
        table.put(b"%d-%d" % (len(lasting.topics()), number), b"1", txn=txns[key])
    before, row = state(lasting, topics), row_json(lasting.reports.show_transaction(txns[which]))
    dry = row_json(lasting.admin.transactions.abort_transaction(txns[which], dry_run=True))
    assert state(lasting, topics) == before
    with pytest.raises(TransactionChanged):
        lasting.admin.transactions.abort_transaction(txns[which], if_version=row["version"] + 1)
    real = row_json(
        lasting.admin.transactions.abort_transaction(txns[which], if_version=dry["version"], reason="stuck")
    )
    after = state(lasting, topics)
    assert real == {**dry, "dryRun": False}
    assert {str(each["kind"]) for each in real["effects"]} == {each["kind"] for each in row["parts"]}
    intents = [each["intents"] for each in real["effects"] if each["kind"] == "table"]
    assert sum(intents) == free.count(which)
    checked(real["effects"], before, after)


@settings(max_examples=examples(20))
@given(scripts, st.sampled_from(AccessMode))
def test_so_are_those_of_fencing(lasting: Store, script: Script, mode: AccessMode) -> None:
    """Whoever sent the transaction's messages is out."""
    topic = f"t{len(lasting.topics())}"
    play(lasting, topic, script)
    with lasting.create_producer(topic, producer_name="loader", access_mode=mode) as loader:
        txn = lasting.begin_transaction()
        loader.send(b"mine", txn=txn)
        before = state(lasting, [topic])
        dry = row_json(lasting.admin.transactions.abort_transaction(txn, dry_run=True, fence=True))
        assert state(lasting, [topic]) == before
        real = row_json(lasting.admin.transactions.abort_transaction(txn, fence=True))
        assert real == {**dry, "dryRun": False}
        assert [each["producerName"] for each in real["effects"] if each["kind"] == "producer"] == ["loader"]
        with pytest.raises(ProducerFenced):
            loader.send(b"late")


class TestFencedBefore:
    """Repeating an abort that fenced is answered as repeating any abort is."""

    def test_a_repeated_abort_with_fence_succeeds(self, store: Store) -> None:
        """The record of the transaction says that its producers were fenced; nothing is changed again."""
        txn = store.begin_transaction()
        with store.create_producer("t", producer_name="loader") as loader:
            loader.send(b"mine", txn=txn)
            first = store.admin.transactions.abort_transaction(txn, fence=True, if_version=2)
            before = len(store.reports.list_audit_records())
            for dry_run in (True, False):
                again = store.admin.transactions.abort_transaction(
                    txn, fence=True, if_version=2, dry_run=dry_run
                )
                assert (first.already, again.already, again.fence, again.effects) == (False, True, True, [])
            assert len(store.reports.list_audit_records()) == before

    def test_the_record_keeps_that_nobody_was_connected(self, store: Store) -> None:
        """The abort did what was asked, although no session was there to end."""
        txn = store.begin_transaction()
        assert not store.admin.transactions.abort_transaction(txn, fence=True).already
        assert store.admin.transactions.abort_transaction(txn, fence=True).already

    def test_an_abort_without_fence_is_too_late_to_fence(self, store: Store) -> None:
        """The producers of the messages are forgotten, and were not fenced: an operator has to know."""
        txn = store.begin_transaction()
        store.admin.transactions.abort_transaction(txn)
        with pytest.raises(TransactionNotOpen, match="producers were not fenced"):
            store.admin.transactions.abort_transaction(txn, fence=True)

    def test_a_commit_is_too_late_to_abort(self, store: Store) -> None:
        """The refusal is that of any abort of a committed transaction."""
        txn = store.begin_transaction()
        store.commit_transaction(txn)
        with pytest.raises(TransactionNotOpen, match="cannot be aborted: it was committed"):
            store.admin.transactions.abort_transaction(txn, fence=True)

    def test_a_transaction_that_a_fencing_ended_is_told_apart(self, store: Store) -> None:
        """Its producers of one topic are fenced, further ones perhaps not: the refusal claims neither of all."""
        first, second = store.begin_transaction(), store.begin_transaction()
        with store.create_producer("t", producer_name="l", access_mode=AccessMode.EXCLUSIVE) as loader:
            for txn in (first, second):
                loader.send(b"mine", txn=txn)
            store.admin.transactions.abort_transaction(first, fence=True)
        with pytest.raises(TransactionNotOpen, match="because a producer was fenced") as caught:
            store.admin.transactions.abort_transaction(second, fence=True)
        assert "were not fenced" not in caught.value.message


@pytest.mark.parametrize("fences", [False, True])
def test_the_backlogs_are_counted_by_one_look_at_their_records(store: Store, fences: bool) -> None:
    """Each message is acknowledged or in flight in a record of its own here; the abort adds sums alone."""
    with store.create_producer("t", producer_name="loader", access_mode=AccessMode.EXCLUSIVE) as producer:
        for _ in range(400):
            producer.send_batch([b"0", b"1"])
        with store.subscribe(
            "t", "a", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED
        ) as consumer:
            messages = consumer.receive_batch(800, timeout=0)
            consumer.acknowledge(messages[1:200])
            consuming, txn = store.begin_transaction(), store.begin_transaction()
            consumer.acknowledge(messages[700:], txn=consuming)
            producer.send(b"mine", txn=txn)
            before = store.reports.subscription_stats("t", "a").row.stats
            with counted(store) as operations:
                result = store.admin.transactions.abort_transaction(txn, fence=fences)
            after = store.reports.subscription_stats("t", "a").row.stats
            (effect,) = (each for each in result.effects if isinstance(each, TopicAborted))
            assert effect.unblocks == {"a": (before.visible, after.visible, before.blocked, after.blocked)}
            assert after.pending == 100
        assert operations.total < 800


@pytest.mark.parametrize("fences", [False, True])
def test_the_names_of_what_is_touched_are_read_outside_the_gate(tmp_path: Path, fences: bool) -> None:
    """The operations under the gate beside 1,000 topics and tables are those beside 10."""
    totals = []
    for number in (10, 1000):
        Store.create(tmp_path / str(number))
        with Store.open(tmp_path / str(number)) as store:
            other_topics(store, number)
            other_tables(store, number)
            scene = Scene(store)
            accounts = [store.table(f"accounts-{at}", create=True) for at in range(3)]
            txn = store.begin_transaction()
            scene.producer.send(b"in it", txn=txn)
            for table in accounts:
                table.put(b"k", b"v", txn=txn)
            with counted(store) as operations:
                result = store.admin.transactions.abort_transaction(txn, fence=fences)
            totals.append(operations.total)
            assert [row_json(effect).get("table") for effect in result.effects if effect.kind == "table"] == [
                f"accounts-{at}" for at in range(3)
            ]
            assert operations.viewed.total < 3 * number + 40
    assert totals[1] <= totals[0] + 10


def test_what_is_touched_after_the_look_is_named(store: Store) -> None:
    """A message in a new topic and a row in a new table, between the look at the names and the batch."""
    txn = store.begin_transaction()
    producer = store.create_producer("t")
    producer.send(b"first", txn=txn)
    store.table("a", create=True).put(b"k", b"v", txn=txn)
    with store.connection.view() as view:
        touched = TouchedNames(view, txn.least)
    store.create_topic("new")
    store.create_table("b")
    with store.connection.view() as view:
        ids = [topics.get(view, name).topic_id for name in ("t", "new")]
        assert [touched.topic_name(view, topic_id) for topic_id in ids] == [
            topics.get(view, name).full_name for name in ("t", "new")
        ]
        assert [touched.table_name(view, table_id) for table_id in (1, 2, 3)] == ["a", "b", "(deleted)"]
