"""The decision table of semantics section 6, row by row, in every situation; and what a refusal leaves: nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage import Store
from storage.errors import ProducerBusy, ProducerFenced, TxnctlError, WaitTimeout
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, MODES, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, assert_fenced, commits, epochs, records, topic_epoch

FREE = {SHARED: "connects", EXCLUSIVE: "owns", WAITING: "owns", FENCING: "owns"}
SHARED_THERE = {SHARED: "connects", EXCLUSIVE: "busy", WAITING: "waits", FENCING: "takes over"}
TAKEN = {SHARED: "busy", EXCLUSIVE: "busy", WAITING: "waits", FENCING: "takes over"}

Step = Callable[[Rivals], object]


def connects(mode: str) -> Step:
    """A producer of a process of its own."""
    return lambda rivals: rivals.produce(mode)


def waits(rivals: Rivals) -> None:
    """A producer that waits."""
    rivals.wait()


def dies(mode: str) -> Step:
    """A producer, or one that waits, whose process dies."""

    def run(rivals: Rivals) -> None:
        process = rivals.open()
        if mode == WAITING:
            rivals.wait(store=process)
        else:
            process.create_producer("t", access_mode=mode)
        process.close()

    return run


def first_leaves(rivals: Rivals) -> None:
    """The producer that came first closes; nobody looks."""
    rivals.producers[0].close()


def leases(rivals: Rivals) -> None:
    """A session for the shell."""
    rivals.open().open_session("t", lease=5)


def lease_ends(rivals: Rivals) -> None:
    """Time passes; nobody looks."""
    rivals.clock.advance(6)


def operator_fences(rivals: Rivals) -> None:
    """`producers fence`."""
    rivals.open().admin.producers.fence_producers("t")


SITUATIONS: dict[str, tuple[dict[str, str], list[Step]]] = {
    "nobody": (FREE, []),
    "an owner that closed": (FREE, [connects(EXCLUSIVE), first_leaves]),
    "a dead owner": (FREE, [dies(EXCLUSIVE)]),
    "a dead shared producer": (FREE, [dies(SHARED)]),
    "an owner whose lease ended": (FREE, [leases, lease_ends]),
    "an operator's fence": (FREE, [connects(SHARED), operator_fences]),
    "a dead owner and a dead waiter": (FREE, [connects(EXCLUSIVE), dies(WAITING), first_leaves]),
    "a shared producer": (SHARED_THERE, [connects(SHARED)]),
    "two shared producers": (SHARED_THERE, [connects(SHARED)] * 2),
    "a shared producer after an owner": (SHARED_THERE, [dies(EXCLUSIVE), dies(FENCING), connects(SHARED)]),
    "a shared producer and a dead waiter": (SHARED_THERE, [connects(SHARED), dies(WAITING)]),
    "a waiter behind a shared producer": (TAKEN, [connects(SHARED), waits]),
    "a waiter behind a dead shared producer": (TAKEN, [connects(SHARED), waits, first_leaves]),
    "an exclusive owner": (TAKEN, [connects(EXCLUSIVE)]),
    "an owner that would have waited": (TAKEN, [dies(EXCLUSIVE), connects(WAITING)]),
    "an owner that fenced": (TAKEN, [connects(SHARED), connects(FENCING)]),
    "a leased owner": (TAKEN, [leases]),
    "an owner and a waiter": (TAKEN, [dies(EXCLUSIVE), connects(EXCLUSIVE), waits]),
    "an owner and a dead waiter": (TAKEN, [connects(EXCLUSIVE), dies(WAITING)]),
    "a waiter whose turn it is": (TAKEN, [connects(EXCLUSIVE), waits, first_leaves]),
    "a waiter whose turn it is once a lease ended": (TAKEN, [leases, waits, waits, lease_ends]),
}


@pytest.fixture
def expected(request: pytest.FixtureRequest, store: Store, rivals: Rivals) -> dict[str, str]:
    """The situation, made; and what asking for each mode comes to in it."""
    result, steps = SITUATIONS[request.param]
    for step in steps:
        step(rivals)
    return result


in_every_situation = pytest.mark.parametrize("expected", SITUATIONS, indirect=True)


def attempt(rivals: Rivals, mode: str, **how: Any) -> str:
    """Ask for a mode; what came of it, in the words of `admission`."""
    process, told = rivals.open(), []
    epoch, others = topic_epoch(process), row_json(process.reports.list_producers("t"))
    if mode == WAITING:
        how["timeout"] = 0
    try:
        producer = process.create_producer("t", access_mode=mode, on_wait=told.append, **how)
    except WaitTimeout:
        assert len(told) == 1
        return "waits"
    except TxnctlError as error:
        assert told == []
        return type(error).__name__
    assert told == []
    producer.send(b"x")
    if mode == SHARED:
        assert producer.topic_epoch == epoch
        return "connects"
    assert producer.topic_epoch == (0 if epoch is None else epoch + 1)
    rows = row_json(process.reports.list_producers("t"))
    assert [(row["isOwner"], row["producerName"]) for row in rows] == [(True, producer.producer_name)]
    return "takes over" if any(row["state"] in ("alive", "leased") for row in others) else "owns"


class TestTable:
    """What each mode comes to, whoever is there."""

    @in_every_situation
    @pytest.mark.parametrize("mode", MODES)
    def test_every_mode_in_every_situation(
        self, store: Store, rivals: Rivals, expected: dict[str, str], mode: str
    ) -> None:
        """What happens is what the table says, and what `show` had said; a refusal leaves no trace."""
        said = row_json(store.reports.show_producers("t"))["admission"]
        assert {each["accessMode"]: each["result"] for each in said} == expected
        if expected[mode] == "waits":
            # The first one that takes a place takes the dead off the topic; that is no trace of its failure.
            assert attempt(rivals, mode) == "waits"
        before, number = records(store), commits(store)
        result = attempt(rivals, mode)
        assert {"ProducerBusy": "busy"}.get(result, result) == expected[mode]
        if expected[mode] in ("busy", "waits"):
            assert records(store) == before
            assert commits(store) == number or expected[mode] == "waits"

    @in_every_situation
    def test_show_says_why_where_it_says_no(self, store: Store, expected: dict[str, str]) -> None:
        """Every answer that is not a plain yes has its reason; some command helps, unless all is free."""
        shown = row_json(store.reports.show_producers("t"))
        for each in shown["admission"]:
            assert bool(each["because"]) is (each["result"] not in ("connects", "owns")), each
        assert shown["waitingPublishers"] == sum(row["alive"] for row in shown["waiting"])

    @in_every_situation
    def test_whoever_brings_another_epoch_is_refused_and_evicts_nobody(
        self, store: Store, rivals: Rivals, expected: dict[str, str]
    ) -> None:
        """The first row: an older epoch is fenced, an unheard-of one is an error, and nothing at all has changed."""
        epoch = topic_epoch(store)
        before, rows = records(store), row_json(store.reports.list_producers("t"))
        for mode in (EXCLUSIVE, WAITING, FENCING):
            for older in range(epoch or 0):
                assert attempt(rivals, mode, topic_epoch=older) == "ProducerFenced"
            for unheard in (0 if epoch is None else epoch + 1, 10**6):
                assert attempt(rivals, mode, topic_epoch=unheard) == "InvalidValue"
        assert (records(store), row_json(store.reports.list_producers("t"))) == (before, rows)

    @in_every_situation
    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    def test_the_topics_epoch_alone_is_no_key(
        self, store: Store, rivals: Rivals, expected: dict[str, str], mode: str
    ) -> None:
        """Whoever brings the current epoch is answered as everybody is, and gets a new one if any."""
        epoch = topic_epoch(store)
        result = attempt(rivals, mode, **({} if epoch is None else {"topic_epoch": epoch}))
        assert {"ProducerBusy": "busy"}.get(result, result) == expected[mode]


class TestGaps:
    """What upstream is suspected to get wrong."""

    def test_a_refusal_commits_nothing(self, store: Store, rivals: Rivals) -> None:
        """Not one store transaction, under any mode that is refused."""
        rivals.produce(EXCLUSIVE)
        rivals.produce(FENCING)
        processes = [rivals.open() for _ in range(5)]
        before = commits(store)
        for process, mode, epoch, error in zip(
            processes,
            [SHARED, EXCLUSIVE, EXCLUSIVE, WAITING, FENCING],
            [None, None, 0, 0, 0],
            [ProducerBusy, ProducerBusy, ProducerFenced, ProducerFenced, ProducerFenced],
            strict=True,
        ):
            with pytest.raises(error):
                process.create_producer("t", access_mode=mode, topic_epoch=epoch)
        assert commits(store) == before

    def test_a_refused_publish_commits_nothing(self, store: Store, rivals: Rivals) -> None:
        """A fenced producer that goes on trying changes nothing, however often."""
        fenced, visitor = rivals.produce(EXCLUSIVE), rivals.open().create_producer("t", connected=False)
        rivals.produce(FENCING)
        before = commits(store)
        assert_fenced(fenced)
        with pytest.raises(ProducerBusy):
            visitor.send(b"x")
        assert commits(store) == before

    def test_a_refused_waiter_takes_no_place(self, store: Store, rivals: Rivals) -> None:
        """Fenced by the epoch that it brings, it never stood in the queue: the next one owns the topic at once."""
        rivals.produce(EXCLUSIVE).close()
        owner = rivals.produce(EXCLUSIVE)
        waiter = rivals.wait(topic_epoch=0)
        assert isinstance(waiter.error, ProducerFenced)
        owner.close()
        assert rivals.produce(EXCLUSIVE).topic_epoch == 2

    def test_a_fenced_one_evicts_nobody(self, store: Store, rivals: Rivals) -> None:
        """A former owner that comes back with its epoch and with fencing leaves owner and queue as they are."""
        former = rivals.produce(EXCLUSIVE)
        owner = rivals.produce(FENCING)
        waiter = rivals.wait()
        for how in ({"topic_epoch": former.topic_epoch}, {"resume": former.session}):
            with pytest.raises(ProducerFenced):
                rivals.produce(FENCING, **how)
        owner.send(b"undisturbed")
        owner.close()
        rivals.look()
        assert waiter.result.topic_epoch == 2
        assert epochs(store) == [1]

    def test_promotion_never_lowers_the_epoch(self, store: Store, rivals: Rivals) -> None:
        """Upstream promotes with the epoch of the queueing; here with the topic's at the promotion, plus one."""
        seen, producers = [], [rivals.produce(EXCLUSIVE)]
        for _ in range(3):
            early = rivals.wait()
            producers.append(rivals.produce(FENCING))
            waiter, late = rivals.wait(), rivals.wait()
            rivals.look()
            assert isinstance(early.error, ProducerFenced)
            producers[-1].close()
            rivals.look()
            waiter.result.close()
            rivals.look()
            producers += [waiter.result, late.result]
            seen += [each.topic_epoch for each in producers[-3:]]
            late.result.send(b"x")
        assert seen == sorted(set(seen))
        assert seen[0] > 0
        assert topic_epoch(store) == seen[-1]
        assert_fenced(producers[0])

    def test_a_waiter_that_brings_an_epoch_is_fenced_by_a_promotion_before_it(
        self, store: Store, rivals: Rivals
    ) -> None:
        """It reconnects under epoch 0 and waits; the one before it takes epoch 1: it has lost the topic for ever."""
        owner = rivals.produce(EXCLUSIVE)
        first, second = rivals.wait(), rivals.wait(topic_epoch=0)
        owner.close()
        rivals.look()
        assert first.result.topic_epoch == 1
        rivals.pass_time(1)
        first.result.close()
        rivals.pass_time(1)
        assert isinstance(second.error, ProducerFenced)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 2

    def test_a_waiter_loses_its_place_to_nobody_that_dies(self, store: Store, rivals: Rivals) -> None:
        """Owners come by fencing and die; waiters that came after keep their order among themselves."""
        rivals.produce(EXCLUSIVE)
        process = rivals.open()
        process.create_producer("t", access_mode=FENCING)
        waiters = [rivals.wait() for _ in range(3)]
        process.close()
        for epoch, waiter in enumerate(waiters, 2):
            rivals.pass_time(1)
            assert waiter.result.topic_epoch == epoch
            waiter.result.close()

    def test_a_second_look_after_a_promotion_promotes_nobody(self, store: Store, rivals: Rivals) -> None:
        """At most one owner at any instant, however often they all look (invariant 10)."""
        owner = rivals.produce(EXCLUSIVE)
        waiters = [rivals.wait() for _ in range(4)]
        owner.close()
        for _ in range(3):
            rivals.pass_time(1)
            assert sum(waiter.result is not None for waiter in waiters) == 1
            assert [row["isOwner"] for row in row_json(store.reports.list_producers("t"))].count(True) == 1
