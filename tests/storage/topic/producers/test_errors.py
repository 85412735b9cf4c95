"""Errors: `storage/topic/producers/errors.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import InvalidValue, ProducerBusy, ProducerFenced
from storage.process.clock import ManualClock
from tests.storage.topic.producers.modes import EXCLUSIVE, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, commits, records, topic_epoch


class TestExclusive:
    """One producer for itself, or a refusal at once."""

    def test_a_second_exclusive_producer_is_refused_naming_the_first(
        self, store: Store, rivals: Rivals
    ) -> None:
        """Upstream: exclusive test, part one."""
        first = rivals.produce(EXCLUSIVE, producer_name="first")
        with pytest.raises(ProducerBusy) as caught:
            rivals.produce(EXCLUSIVE, producer_name="second")
        assert "first" in caught.value.message
        assert caught.value.details["topic"].endswith("t")
        assert (caught.value.code, caught.value.exit_code, caught.value.retryable) == (
            "producer-busy",
            4,
            False,
        )
        first.send(b"still mine")
        assert first.topic_epoch == topic_epoch(store) == 0


class TestArguments:
    """What can be asked for."""

    @pytest.mark.parametrize(
        "how",
        [
            {"access_mode": "Exclusiv"},
            {"access_mode": ""},
            {"access_mode": 1},
            {"access_mode": EXCLUSIVE, "topic_epoch": -1},
            {"access_mode": EXCLUSIVE, "topic_epoch": 0},
            {"access_mode": EXCLUSIVE, "topic_epoch": 1.5},
            {"access_mode": EXCLUSIVE, "topic_epoch": True},
            {"access_mode": EXCLUSIVE, "topic_epoch": 1 << 70},
            {"access_mode": SHARED, "topic_epoch": 0},
            {"access_mode": EXCLUSIVE, "connected": False},
            {"access_mode": WAITING, "timeout": -1},
            {"access_mode": WAITING, "timeout": "soon"},
            {"resume": "0badcafe-1-1-0011223344556677", "access_mode": SHARED},
            {"resume": "0badcafe-1-1-0011223344556677", "access_mode": EXCLUSIVE, "producer_name": "p"},
            {"resume": "no token", "access_mode": EXCLUSIVE},
            {"resume": "1-2", "access_mode": EXCLUSIVE},
            {"resume": "0badcafe-1-2-zzzzzzzzzzzzzzzz", "access_mode": EXCLUSIVE},
            {"resume": "0badcafe-1-2-0011223344556677-00", "access_mode": EXCLUSIVE},
            {"resume": "-1-2-0011223344556677", "access_mode": EXCLUSIVE},
            {"resume": "0badcafe-0-2-0011223344556677", "access_mode": EXCLUSIVE},
            {"resume": "", "access_mode": EXCLUSIVE},
            {"resume": 5, "access_mode": EXCLUSIVE},
        ],
        ids=str,
    )
    def test_what_cannot_be_asked_for_is_refused_and_leaves_nothing(
        self, store: Store, how: dict[str, Any]
    ) -> None:
        """Unknown modes, epochs that no topic has, half a token: InvalidValue, before anything is done."""
        before = records(store), commits(store)
        with pytest.raises(InvalidValue):
            store.create_producer("t", **how)
        assert (records(store), commits(store)) == before


class TestWaiting:
    """First come, first served."""

    def test_who_is_there_is_told_once(self, rivals: Rivals) -> None:
        """In words: those ahead of it, the connected ones and those who wait."""
        rivals.produce(EXCLUSIVE, producer_name="owner")
        rivals.wait(producer_name="early")
        late = rivals.wait(producer_name="late")
        rivals.pass_time(100)
        assert [words.partition(" ")[0] for words in late.told] == ["owner", "early"]


class TickingClock(ManualClock):
    """A clock whose every reading is a millisecond later, as a batch may take longer than that."""

    __slots__ = ()

    def wall_ns(self) -> int:
        self.wall_now_ns += 1_000_000
        return self.wall_now_ns


def test_the_reason_of_a_fence_is_found_however_long_the_batch_took(tmp_path: Path) -> None:
    """Grant and audit record of one batch have one time, by which the reason is found."""
    place, clock = str(tmp_path / "store"), TickingClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as store:
        store.create_topic("t")
        owner = store.create_producer("t", access_mode=EXCLUSIVE)
        store.admin.producers.fence_producers("t", reason="hangs since the deploy")
        with pytest.raises(ProducerFenced, match="hangs since the deploy"):
            owner.send(b"late")


class TestFencing:
    """ExclusiveWithFencing takes the topic, whoever has it."""

    def test_who_is_fenced_is_told_by_whom_and_why(self, store: Store, rivals: Rivals) -> None:
        """By name, with the operator's reason, also when somebody who waited owns the topic by then."""
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        waiter = rivals.wait(producer_name="waiter")
        store.admin.producers.fence_producers("t", reason="hangs since the deploy")
        rivals.look()
        assert waiter.result.topic_epoch == 2
        with pytest.raises(ProducerFenced) as caught:
            owner.send(b"late")
        assert caught.value.message.startswith("producer owner of topic t is fenced: the operator ")
        assert caught.value.message.endswith(", epoch 1: hangs since the deploy")
        second = rivals.wait(producer_name="second")
        store.admin.producers.fence_producers("t", waiting=True)
        rivals.look()
        assert str(second.error).startswith("producer second of topic t is fenced: the operator ")
        assert str(second.error).endswith(", epoch 3")
