"""Delivery times: from arguments of a send to the bytes of an entry."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from storage.errors import InvalidValue
from storage.process.clock import ManualClock
from storage.topic.batching import columns_of, entries_of, unpacked
from storage.topic.delivery_times import delivery_times
from storage.topic.entry import Columns

NOW_MS = 1_700_000_000_000


class TestArguments:
    """A delay or a time, for all messages or for each."""

    @pytest.mark.parametrize(
        ("given", "wanted"),
        [
            ({"deliver_after": 1.5}, [NOW_MS + 1500] * 2),
            ({"deliver_after": [None, 0]}, [None, NOW_MS]),
            ({"deliver_after": 0.0001}, [NOW_MS + 1] * 2),
            ({"deliver_at": 5}, [5, 5]),
            ({"deliver_at": [5, None]}, [5, None]),
        ],
    )
    def test_what_is_meant(self, given: dict[str, Any], wanted: list[int | None]) -> None:
        """A delay is rounded up to a millisecond: no message is early."""
        after, at = given.get("deliver_after"), given.get("deliver_at")
        assert delivery_times(NOW_MS, [b"a", b"b"], after, at) == wanted

    @pytest.mark.parametrize(
        "given",
        [
            {"deliver_after": 1, "deliver_at": 5},
            {"deliver_after": -1},
            {"deliver_after": float("nan")},
            {"deliver_after": float("inf")},
            {"deliver_after": 1e300},
            {"deliver_after": True},
            {"deliver_after": [True, None]},
            {"deliver_at": True},
            {"deliver_after": [1]},
            {"deliver_at": [5]},
            {"deliver_at": -1},
            {"deliver_at": 1.5},
            {"deliver_at": 1 << 63},
            {"deliver_after": "soon"},
            {"deliver_at": "soon"},
        ],
    )
    def test_what_is_refused(self, store: Store, given: dict[str, Any]) -> None:
        """Nothing is stored."""
        producer = store.create_producer("t")
        with pytest.raises(InvalidValue):
            producer.send_batch([b"a", b"b"], **given)
        assert list(store.reader("t")) == []

    def test_a_message_shows_its_time(self, store: Store, clock: ManualClock) -> None:
        """As every reader sees it; sent alone or in a batch."""
        producer = store.create_producer("t")
        producer.send(b"a", deliver_after=2)
        producer.send(b"b", key="k", deliver_at=7)
        producer.send_batch([b"c", b"d"], deliver_after=[None, 1])
        now_ms = clock.wall_ms()
        times = [message.deliver_at for message in store.reader("t")]
        assert times == [now_ms + 2000, 7, None, now_ms + 1000]


class TestBytes:
    """The column is there where a message has a time, and nowhere else."""

    def test_plain_messages_keep_their_bytes(self) -> None:
        """None for every message is no column."""
        plain = columns_of([b"a", b"b"], ["k", None], None, None)
        assert columns_of([b"a", b"b"], ["k", None], None, None, [None, None]).body("p", 3) == plain.body(
            "p", 3
        )
        assert plain.body("p", 3) == bytes.fromhex("96a1700392c40161c4016292c4016bc0c0c0")

    def test_a_time_is_one_further_element(self) -> None:
        """And packed elsewhere the entry has the same bytes."""
        columns = columns_of([b"a", b"b"], None, None, None, [None, 5])
        assert columns.body("p", 3) == bytes.fromhex("97a1700392c40161c40162c0c0c092c005")
        (packed,) = entries_of(columns)
        assert packed.body("p", 3) == columns.body("p", 3)
        assert unpacked(packed).delivery_times == [None, 5]

    def test_parts_and_joints_without_a_time_have_no_column(self) -> None:
        columns = columns_of([b"a", b"b"], None, None, None, [None, 5])
        assert columns.part(0, 1).delivery_times is None
        assert columns.pick([0]).delivery_times is None
        joined = Columns.joined([columns_of([b"x"], None, None, None), columns])
        assert joined.delivery_times == [None, None, 5]
