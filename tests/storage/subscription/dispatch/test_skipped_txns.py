"""Skipped transactions: their records, the messages blocked behind them, and the cursor's counts of both."""

from __future__ import annotations

from storage import OnOpen, Position, Store, SubscriptionType
from storage.disk.codec import key4
from storage.disk.schema import AWAITED, HELD
from storage.disk.view import WriteBatch
from storage.subscription import catalogue as subscriptions
from storage.subscription.dispatch import skipped_txns
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics

FIRST, SECOND = Position(1, 0), Position(1, 1)


def opened(batch: WriteBatch, store: Store) -> OpenSubscription[WriteBatch]:
    return OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "s"))


def test_counts_follow_the_records(store: Store) -> None:
    """Blocking the same message twice counts once; unblocking and removing take back what was counted."""
    store.subscribe("t", "s", subscription_type=SubscriptionType.KEY_SHARED, on_open=OnOpen.SKIP).close()

    def check(batch: WriteBatch) -> None:
        subscription = opened(batch, store)
        cursor, sid = subscription.cursor, subscription.subscription_id
        skipped = skipped_txns.skip(subscription, 5)
        assert skipped_txns.skip(subscription, 5) is skipped
        skipped_txns.block(subscription, skipped, FIRST, 3, 0b011)
        skipped_txns.block(subscription, skipped, FIRST, 3, 0b110)
        skipped_txns.block(subscription, skipped, SECOND, 1, 0b1)
        assert (cursor.skipped_txns, cursor.blocked, skipped.blocked) == (1, 4, 4)
        behind = list(skipped_txns.blocked_behind(batch, sid, 5, Position(0, -1)))
        assert behind == [(FIRST, b"\x07"), (SECOND, b"\x01")]
        assert batch.count(HELD) == 1
        assert [at for at, _ in skipped_txns.blocked_behind(batch, sid, 5, FIRST)] == [SECOND]
        skipped_txns.unblock(subscription, skipped, {FIRST: 0b111})
        assert list(skipped_txns.blocked_behind(batch, sid, 5, Position(0, -1))) == [(SECOND, b"\x01")]
        skipped_txns.unblock(subscription, skipped, {SECOND: 0b1})
        skipped_txns.remove(subscription, skipped)
        assert (cursor.skipped_txns, cursor.blocked) == (0, 0)
        assert (batch.count(AWAITED), batch.count(HELD)) == (0, 0)

    store.connection.write(check, dry_run=True)


def test_a_record_of_an_earlier_release(store: Store) -> None:
    """Messages of its entry that wait besides are in the span, and come together."""
    store.subscribe("t", "s", subscription_type=SubscriptionType.KEY_SHARED, on_open=OnOpen.SKIP).close()

    def check(batch: WriteBatch) -> None:
        subscription = opened(batch, store)
        sid, skipped = subscription.subscription_id, skipped_txns.skip(subscription, 5)
        skipped_txns.block(subscription, skipped, SECOND, 3, 0b001)
        skipped_txns.block(subscription, skipped, Position(1, 2), 129, 1 << 128)
        batch.put(HELD, key4(sid, 5, *SECOND), b"\x02")
        skipped.blocked += 1
        subscription.cursor.blocked += 1
        skipped_txns.block(subscription, skipped, SECOND, 3, 0b010)
        assert (batch.count(HELD), skipped.blocked) == (3, 3)
        behind = list(skipped_txns.blocked_behind(batch, sid, 5, FIRST))
        assert behind == [(SECOND, b"\x03"), (Position(1, 2), (1 << 128).to_bytes(17, "big"))]
        skipped_txns.unblock(subscription, skipped, {SECOND: 0b011, Position(1, 2): 1 << 128})
        assert (batch.count(HELD), skipped.blocked, subscription.cursor.blocked) == (0, 0, 0)

    store.connection.write(check, dry_run=True)


def test_a_new_record_is_written_with_the_batch(store: Store) -> None:
    """And clearing forgets all of them, and has consumers learn anew."""
    store.subscribe("t", "s", subscription_type=SubscriptionType.KEY_SHARED, on_open=OnOpen.SKIP).close()

    def skip(batch: WriteBatch) -> int:
        subscription = opened(batch, store)
        skipped_txns.skip(subscription, 5).examined = SECOND
        return subscription.subscription_id

    subscription_id = store.connection.write(skip)
    with store.connection.view() as view:
        (skipped,) = skipped_txns.every(view, subscription_id)
        assert (skipped.txn, skipped.examined, skipped.blocked) == (5, SECOND, 0)
        assert skipped_txns.find(view, subscription_id, 6) is None

    def clear(batch: WriteBatch) -> tuple[int, int]:
        subscription = opened(batch, store)
        passes = subscription.cursor.passes
        skipped_txns.clear(subscription)
        return subscription.cursor.passes - passes, subscription.cursor.skipped_txns

    assert store.connection.write(clear) == (1, 0)
    with store.connection.view() as view:
        assert list(skipped_txns.every(view, subscription_id)) == []
