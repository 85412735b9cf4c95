"""One query reads a subscription: rivals in processes of their own, of which some are killed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.errors import ConsumerEvicted, SubscriptionBusy
from tests.processes.child import Child
from tests.txnctl.spark.source.topic_stream_steps import reader, send
from txnctl.spark.source import stream_hold

HOLDER = """
import sys
from tests.processes.parent import hear, say
from tests.txnctl.spark.source.topic_stream_steps import reader
stream = reader(sys.argv[1], subscription="s", startingPosition="earliest")
if len(sys.argv) > 2:
    from txnctl.spark.source import stream_hold
    stream_hold.PATIENCE_S = 0.2
    say("ready")
    hear()
try:
    start = stream.initialOffset()
    say("started", start)
except Exception as error:
    say("refused", type(error).__name__, error)
hear()
"""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse at once."""
    monkeypatch.setattr(stream_hold, "PATIENCE_S", 0.2)


def test_a_second_query_is_refused_and_the_first_one_named(store: Store, path: str, impatient: None) -> None:
    """With its process, and what to do; nothing of the first is disturbed."""
    store.create_topic("t")
    send(store, "t", b"1")
    holder = Child(["-c", HOLDER, path])
    try:
        assert holder.expect("started") == "{'t': '1:-1'}"
        with pytest.raises(SubscriptionBusy) as caught:
            reader(path, subscription="s").initialOffset()
        assert re.fullmatch(
            rf"subscription s of t is read already, by spark-driver-{os.getpid()} \(\S+:{holder.pid} \(Spark stream\)\)",
            caught.value.message,
        )
        assert "subscription of its own" in (caught.value.hint or "")
        (consumer,) = store.reports.subscription_stats("t", "s").row.stats.consumers
        assert consumer.pid == holder.pid
    finally:
        holder.close()


def test_a_crashed_query_is_followed_at_once(store: Store, path: str) -> None:
    """SIGKILL of its process frees the subscription, whose cursor stays."""
    store.create_topic("t")
    send(store, "t", b"1")
    holder = Child(["-c", HOLDER, path])
    try:
        holder.expect("started")
        holder.kill()
        stream = reader(path, subscription="s")
        assert stream.initialOffset() == {"t": "1:-1"}
        stream.commit({"t": "1:0"})
        stream.stop()
        assert store.reports.subscription_stats("t", "s").row.stats.consumers == []
        assert store.reports.subscription_stats("t", "s").row.stats.msg_backlog == 0
    finally:
        holder.close()


def test_of_two_that_start_together_one_reads(store: Store, path: str) -> None:
    """The subscription is made once, at the start that was asked for; the other is told who reads."""
    store.create_topic("t")
    send(store, "t", b"1")
    rivals = [Child(["-c", HOLDER, path, "x"]) for _ in range(2)]
    try:
        for rival in rivals:
            rival.expect("ready")
        for rival in rivals:
            rival.say()
        said = sorted(rival.line() or "" for rival in rivals)
        assert said[0].startswith("refused SubscriptionBusy subscription s of t is read already, by ")
        assert said[1] == "started {'t': '1:-1'}"
    finally:
        for rival in rivals:
            rival.close()


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
def test_a_consumer_and_a_stream_do_not_share(
    store: Store, path: str, impatient: None, kind: SubscriptionType
) -> None:
    """An attached consumer of another process is named likewise."""
    store.create_topic("t")
    program = (
        "import sys\nfrom storage import Store, SubscriptionType\nfrom tests.processes.parent import hear, say\n"
        f"consumer = Store.open(sys.argv[1]).subscribe('t', 's', subscription_type=SubscriptionType.{kind.name})\n"
        "say('attached')\nhear()\n"
    )
    other = Child(["-c", program, path])
    try:
        other.expect("attached")
        with pytest.raises(SubscriptionBusy, match=r"is read already, by consumer-1 "):
            reader(path, subscription="s").initialOffset()
    finally:
        other.close()


def test_an_evicted_query_moves_no_cursor(store: Store, path: str) -> None:
    """`subscriptions evict` ends a query from outside: it fails at its next commit."""
    store.create_topic("t")
    send(store, "t", b"1")
    stream = reader(path, subscription="s", startingPosition="earliest")
    stream.initialOffset()
    store.admin.subscriptions.evict_consumers("t", "s")
    with pytest.raises(ConsumerEvicted):
        stream.commit({"t": "1:0"})
    assert store.reports.subscription_stats("t", "s").row.stats.msg_backlog == 1
    stream.stop()


def test_a_consumer_may_acknowledge_what_it_never_received(store: Store, tmp_path: Path) -> None:
    """Up to a position, as a program does that keeps its own position; further messages still come."""
    store.create_topic("t")
    send(store, "t", b"1", b"2", b"3")
    with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
        ids = [message.message_id for message in store.reader("t")]
        consumer.acknowledge_through(ids[1].position)
        assert consumer.receive(1).value == b"3"
