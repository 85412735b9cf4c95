"""Ending what nobody will end: the next writer does it (semantics section 3)."""

from __future__ import annotations

from functools import partial

import pytest

from storage import EARLIEST, MessageId, Store, TxnID
from storage.disk.codec import key1, pack
from storage.disk.schema import LEASES
from storage.disk.view import WriteBatch
from storage.errors import AlreadyExists, WaitTimeout
from storage.limits import LEASES_LOOKED_AT, REAP_PER_WRITE_MAX, REAP_STEP_MAX
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.catalogue import LedgerLimits
from storage.txn import reaper
from storage.txn.begin import NewTransaction
from tests.row_json import row_json
from tests.storage.lmdb_operations import counted
from tests.storage.subscription.crowd import looks


def states(store: Store, *txns: TxnID) -> list[tuple[str, str | None]]:
    return [(shown.row.state.value, shown.row.reason) for shown in map(store.reports.show_transaction, txns)]


def orphan(path: str, clock: ManualClock, topic: str = "t") -> TxnID:
    """A transaction with a message, attached to an owner that is gone."""
    with Store.open(path, clock=clock) as owner:
        txn = owner.transaction()
        owner.create_producer(topic).send(b"orphan", txn=txn)
        return txn.id


class TestOverdue:
    """Transactions past their deadline."""

    def test_the_next_writer_aborts_them(self, store: Store, clock: ManualClock) -> None:
        """Any write at all ends an overdue transaction before it does its own work."""
        producer = store.create_producer("t")
        txn = store.begin_transaction(timeout=10)
        producer.send(b"overdue", txn=txn)
        clock.advance(10)
        assert producer.send(b"next") == MessageId(1, 2)
        assert [row["kind"] for row in row_json(store.reports.topic_log("t"))] == [
            "messages",
            "abort",
            "messages",
        ]
        assert states(store, txn) == [("ABORTED", "timed-out")]
        assert [message.value for message in store.reader("t")] == [b"next"]

    def test_a_few_at_a_time_the_most_urgent_first(self, store: Store, clock: ManualClock) -> None:
        """One write does not pay for all: the rest is for the writes that follow."""
        txns = [store.begin_transaction(timeout=20 - number) for number in range(REAP_PER_WRITE_MAX + 2)]
        producer = store.create_producer("t")
        clock.advance(60)
        producer.send(b"x")
        ended = [state == "ABORTED" for state, _ in states(store, *txns)]
        assert ended == [False, False] + [True] * REAP_PER_WRITE_MAX
        producer.send(b"x")
        assert all(state == "ABORTED" for state, _ in states(store, *txns))

    def test_the_one_that_a_command_names_is_not_reaped_on_its_way(
        self, store: Store, clock: ManualClock
    ) -> None:
        """State and deadline of a named transaction are compared once, by what names it."""
        named, other = store.begin_transaction(timeout=10), store.begin_transaction(timeout=10)
        clock.advance(10)
        assert row_json(store.admin.transactions.abort_transaction(named))["already"] is False
        assert states(store, named, other) == [("ABORTED", "asked"), ("ABORTED", "timed-out")]

    def test_what_is_due_later_is_left(self, store: Store, clock: ManualClock) -> None:
        """A writer ends nothing before its deadline."""
        txn = store.begin_transaction(timeout=10)
        clock.advance(9.999)
        store.create_producer("t").send(b"x")
        assert states(store, txn) == [("OPEN", None)]

    def test_a_refused_write_reaps_nothing(self, store: Store, clock: ManualClock) -> None:
        """A refused command leaves nothing behind, not even what it ended on its way."""
        txn = store.begin_transaction(timeout=10)
        clock.advance(10)
        with pytest.raises(AlreadyExists):
            store.create_topic("t")
        assert states(store, txn) == [("OPEN", None)]

    def test_a_waiting_consumer_ends_what_it_waits_for(self, store: Store, clock: ManualClock) -> None:
        """It wakes when the deadline has passed, aborts, and is handed what was blocked."""
        producer = store.create_producer("t")
        producer.send(b"open", txn=store.begin_transaction(timeout=10))
        producer.send(b"blocked")
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        with pytest.raises(WaitTimeout):
            consumer.receive(timeout=8)
        assert consumer.receive(timeout=5).value == b"blocked"

    def test_waiting_for_the_transaction_itself_ends_it(self, store: Store, clock: ManualClock) -> None:
        """`transactions wait` wakes at the deadline and aborts."""
        txn = store.begin_transaction(timeout=10)
        with pytest.raises(WaitTimeout):
            store.reports.wait_for_transaction(txn, timeout=9)
        assert row_json(store.reports.wait_for_transaction(txn, timeout=2))["reason"] == "timed-out"

    def test_looking_for_it_without_waiting_ends_it(self, store: Store, clock: ManualClock) -> None:
        """With a timeout of 0 too, the end that the wait itself brings about is reported."""
        txn = store.begin_transaction(timeout=10)
        with pytest.raises(WaitTimeout):
            store.reports.wait_for_transaction(txn, timeout=0)
        clock.advance(11)
        assert row_json(store.reports.wait_for_transaction(txn, timeout=0))["reason"] == "timed-out"

    def test_waiting_for_it_after_a_reboot_ends_it(self, store: Store, path: str, clock: ManualClock) -> None:
        """The wait starts the store clock, which stands until the first write of the boot."""
        txn = store.begin_transaction(timeout=10)
        store.close()
        clock.boot, clock.boot_now_ns = b"manual-boot-0002", 5
        with Store.open(path, clock=clock) as again:
            with pytest.raises(WaitTimeout):
                again.reports.wait_for_transaction(txn, timeout=9)
            assert row_json(again.reports.wait_for_transaction(txn, timeout=2))["reason"] == "timed-out"

    def test_who_waits_is_a_writer_as_any(self, store: Store, clock: ManualClock) -> None:
        """It ends the others that are overdue too, and is no operator who reaps."""
        others = [store.begin_transaction(timeout=5) for _ in range(9)]
        assert (
            row_json(store.reports.wait_for_transaction(store.begin_transaction(timeout=10), timeout=20))[
                "reason"
            ]
            == "timed-out"
        )
        assert states(store, *others) == [("ABORTED", "timed-out")] * 9
        assert {row["action"] for row in row_json(store.reports.list_audit_records())} == {
            "transaction expired"
        }

    def test_many_are_ended_in_steps(self, store: Store, clock: ManualClock) -> None:
        """No store transaction has more to do than the bound; each leaves a record, and a dry run shows all."""
        store.admin.settings.set_reap_policy("manual")
        for _ in range(REAP_STEP_MAX + 2):
            store.begin_transaction(timeout=1)
        clock.advance(2)
        assert len(row_json(store.admin.transactions.reap_transactions(dry_run=True))) == REAP_STEP_MAX + 2
        assert (
            len(row_json(store.admin.transactions.reap_transactions(REAP_STEP_MAX + 1, reason="cron")))
            == REAP_STEP_MAX + 1
        )
        counts = [
            len(row["effects"]["transactionsAborted"])
            for row in row_json(store.reports.list_audit_records())
            if row["reason"] == "cron"
        ]
        assert (counts, len(row_json(store.reports.list_transactions()))) == ([1, REAP_STEP_MAX], 1)

    @pytest.mark.parametrize("read_only", [False, True])
    def test_who_waits_keeps_to_the_policy(
        self, store: Store, path: str, clock: ManualClock, read_only: bool
    ) -> None:
        """Where it is left to operators nothing is ended, and the wait sleeps all the same."""
        store.admin.settings.set_reap_policy("manual")
        txn = store.begin_transaction(timeout=1)
        clock.advance(2)
        before = clock.boot_ns()
        with Store.open(path, clock=clock, read_only=read_only) as waiting, pytest.raises(WaitTimeout):
            waiting.reports.wait_for_transaction(txn, timeout=5)
        assert clock.boot_ns() - before >= 5 * 10**9
        assert states(store, txn) == [("OPEN", None)]


class TestOrphans:
    """Attached transactions whose owner is proven dead."""

    def test_the_next_writer_aborts_them(self, store: Store, path: str, clock: ManualClock) -> None:
        """The first write of a process looks for dead owners."""
        txn = orphan(path, clock)
        clock.advance(2)
        store.create_producer("t").send(b"next")
        assert states(store, txn) == [("ABORTED", "owner-dead")]
        assert [message.value for message in store.reader("t")] == [b"next"]

    def test_a_refused_write_looks_for_nobody(self, store: Store, path: str, clock: ManualClock) -> None:
        """It drops what it found, so the next write looks again, also within the second."""
        txn = orphan(path, clock)
        clock.advance(2)
        with pytest.raises(AlreadyExists):
            store.create_topic("t")
        assert states(store, txn) == [("OPEN", None)]
        store.create_topic("u")
        assert states(store, txn) == [("ABORTED", "owner-dead")]

    def test_many_of_several_owners_are_all_found(self, store: Store, path: str, clock: ManualClock) -> None:
        """An owner whose turn has not come when a write has ended enough is still known to the next write."""
        with Store.open(path, clock=clock) as one, Store.open(path, clock=clock) as two:
            txns = []
            for owner, count in ((one, REAP_PER_WRITE_MAX), (two, 2)):
                producer = owner.create_producer("t", connected=False)
                for _ in range(count):
                    txn = owner.transaction()
                    producer.send(b"orphan", txn=txn)
                    txn.flush()
                    txns.append(txn.id)
        producer = store.create_producer("t")
        for _ in range(3):
            clock.advance(2)
            producer.send(b"x")
        assert states(store, *txns) == [("ABORTED", "owner-dead")] * len(txns)

    def test_open_transactions_do_not_put_off_the_look(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """Every write compares deadlines while one is recorded; the look for dead owners is due all the same."""
        producer = store.create_producer("t")
        store.begin_transaction(timeout=60)
        txn = orphan(path, clock)
        producer.send(b"x")
        for _ in range(3):
            clock.advance(0.6)
            producer.send(b"x")
        assert states(store, txn) == [("ABORTED", "owner-dead")]

    def test_a_detached_one_outlives_its_process(self, store: Store, path: str, clock: ManualClock) -> None:
        """The deadline alone rules a transaction that one command begins and the next one uses."""
        with Store.open(path, clock=clock) as owner:
            txn = owner.begin_transaction()
        clock.advance(2)
        store.create_producer("t").send(b"next")
        store.admin.transactions.reap_transactions()
        assert states(store, txn) == [("OPEN", None)]
        assert store.commit_transaction(txn)

    def test_one_whose_owner_lives_is_left(self, store: Store, path: str, clock: ManualClock) -> None:
        """An idle owner is not a dead one."""
        with Store.open(path, clock=clock) as owner, owner.transaction() as txn:
            clock.advance(300)
            store.create_producer("t").send(b"next")
            store.admin.transactions.reap_transactions()
            assert states(store, txn.id) == [("OPEN", None)]

    def test_naming_one_uses_it_as_it_is(self, store: Store, path: str, clock: ManualClock) -> None:
        """What a command names is not reaped on its way: an orphan in time can be committed by its id."""
        txn = orphan(path, clock)
        clock.advance(2)
        assert store.commit_transaction(txn)
        assert [message.value for message in store.reader("t")] == [b"orphan"]

    def test_its_messages_are_free_before_others_are_handed_any(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """Who takes a dead consumer's place is handed what it held, and what it had pending, in order."""
        producer = store.create_producer("t")
        for number in range(4):
            producer.send(b"%d" % number)
        with Store.open(path, clock=clock) as owner:
            dead = owner.subscribe("t", "a", initial_position=EARLIEST)
            first, *_ = dead.receive_batch(3, timeout=0)
            dead.acknowledge(first, txn=owner.transaction())
        consumer = store.subscribe("t", "a")
        received = consumer.receive_batch(9, timeout=0)
        assert [message.value for message in received] == [b"0", b"1", b"2", b"3"]
        assert [message.redelivery_count for message in received[:3]] == [1, 1, 1]


@pytest.mark.parametrize("number", [10, 1000])
def test_a_look_at_the_transactions_of_a_dead_process_is_bounded(
    store: Store, clock: ManualClock, number: int
) -> None:
    """The look lists no more of them than one write ends, and so does the question of a waiting process."""

    def begin(batch: WriteBatch) -> None:
        batch.put(LEASES, key1(99), bytes(batch.get(LEASES, key1(store.connection.lease(batch))) or b""))
        for _ in range(number):
            store.engine.coordinator.begin(batch, store.engine.process, 99, NewTransaction(3_600_000))

    store.connection.write(begin)
    with counted(store) as operations, store.connection.view() as view:
        assert reaper.is_due(view, store.engine.locks)
    assert operations.viewed.total < 20
    clock.advance(2)
    with counted(store) as operations:
        store.connection.write(lambda _: None)
    assert operations.most < 80
    store.admin.transactions.reap_transactions()


@pytest.mark.parametrize("number", [LEASES_LOOKED_AT, 1000])
def test_a_look_beside_many_living_processes_is_bounded(
    store: Store, path: str, clock: ManualClock, number: int
) -> None:
    """The look asks for a few leases that own no transaction, and ends the transactions of every dead owner."""
    leases = record_leases(store, number)
    txn = orphan(path, clock)
    clock.advance(2)
    with looks(store) as looked, counted(store) as operations:
        store.connection.write(lambda _: None)
    assert states(store, txn) == [("ABORTED", "owner-dead")]
    assert looked.number <= LEASES_LOOKED_AT + 4
    assert operations.most < 120
    assert set(leases) <= recorded_leases(store)


def test_the_records_of_dead_processes_are_removed_in_turn(store: Store, clock: ManualClock) -> None:
    """Every record comes up once in as many looks as it takes, and those of living processes stay."""
    leases = record_leases(store, 4 * LEASES_LOOKED_AT)
    dead = set(leases[::2])
    for lease in dead:
        store.connection.environment.locks.leases.drop(lease)
    for _ in range(5):
        clock.advance(2)
        store.connection.write(lambda _: None)
    assert recorded_leases(store) & set(leases) == set(leases) - dead


def test_processes_that_write_once_begin_at_different_leases(store: Store) -> None:
    """The records of dead processes behind many living ones are removed by processes that write once each."""
    leases = record_leases(store, 3 * LEASES_LOOKED_AT)
    for lease in leases[-LEASES_LOOKED_AT:]:
        store.connection.environment.locks.leases.drop(lease)

    def write_once(batch: WriteBatch, number: int) -> None:
        reaper.Reaper(store.engine.coordinator, lambda: store.connection.identity).reap_some(batch, True)
        topics.create(batch, f"t-{number}", LedgerLimits())

    for number in range(len(leases)):
        store.connection.write(partial(write_once, number=number))
    assert recorded_leases(store) & set(leases) == set(leases[:-LEASES_LOOKED_AT])


def record_leases(store: Store, number: int) -> list[int]:
    """Record leases of as many living processes, which own no transaction."""

    def change(batch: WriteBatch) -> list[int]:
        begin = batch.superblock.last_lease + 1
        batch.superblock.last_lease += number
        leases = list(range(begin, begin + number))
        for lease in leases:
            assert batch.locks.leases.hold(lease)
            batch.put(LEASES, key1(lease), pack(store.connection.identity.fields()))
        return leases

    return store.connection.write(change)


def recorded_leases(store: Store) -> set[int]:
    with store.connection.view() as view:
        return {int.from_bytes(key, "big") for key in view.keys(LEASES)}


class TestLeaseWithoutRecord:
    """A transaction whose lease no process has recorded, as a lost record leaves it."""

    LEASE = 99

    @pytest.fixture
    def txn(self, store: Store) -> TxnID:
        """With a message."""

        def begin(batch: WriteBatch) -> TxnID:
            return store.engine.coordinator.begin(
                batch, store.engine.process, self.LEASE, NewTransaction(3_600_000)
            ).id

        txn = store.connection.write(begin)
        store.create_producer("t", connected=False).send(b"of nobody", txn=txn)
        return txn

    def test_the_next_writer_aborts_it(self, store: Store, clock: ManualClock, txn: TxnID) -> None:
        """What a waiting process finds due is what the look of its write ends; both producers go on behind it."""
        with store.connection.view() as view:
            assert reaper.is_due(view, store.engine.locks)
        clock.advance(2)
        first, second = store.create_producer("t"), store.create_producer("t")
        first.send(b"1")
        second.send(b"2")
        assert states(store, txn) == [("ABORTED", "owner-dead")]
        assert [message.value for message in store.reader("t")] == [b"1", b"2"]
        with store.connection.view() as view:
            assert not reaper.is_due(view, store.engine.locks)
        assert store.maintenance.verify_store(full=True) == []

    def test_an_operator_reaps_it(self, store: Store, txn: TxnID) -> None:
        """Under any policy, and without a wait for the look."""
        reaped = row_json(store.admin.transactions.reap_transactions())
        assert [row["txnId"] for row in reaped] == [str(txn)]
        assert states(store, txn) == [("ABORTED", "owner-dead")]


class TestReap:
    """`transactions reap`."""

    def test_it_ends_all_and_says_which(self, store: Store, path: str, clock: ManualClock) -> None:
        """Overdue and orphaned ones are listed as they ended; what is neither is left."""
        overdue, left = store.begin_transaction(timeout=1), store.begin_transaction()
        clock.advance(1)
        orphaned = orphan(path, clock)
        rehearsed = row_json(store.admin.transactions.reap_transactions(dry_run=True))
        assert states(store, left, orphaned) == [("OPEN", None)] * 2
        ended = row_json(store.admin.transactions.reap_transactions())
        assert [row["txnId"] for row in ended] == [row["txnId"] for row in rehearsed]
        assert {(row["txnId"], row["reason"]) for row in ended} <= {
            (str(overdue), "timed-out"), (str(orphaned), "owner-dead"),
        }  # fmt: skip
        assert states(store, overdue, orphaned, left) == [
            ("ABORTED", "timed-out"), ("ABORTED", "owner-dead"), ("OPEN", None),
        ]  # fmt: skip
        assert row_json(store.admin.transactions.reap_transactions()) == []

    def test_the_policy_may_be_overdue_only_or_manual(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """A store may leave orphans, or everything, to `reap`; `reap` itself goes by no policy."""
        producer = store.create_producer("t")
        store.admin.settings.set_reap_policy("manual")
        overdue, orphaned = store.begin_transaction(timeout=1), orphan(path, clock)
        clock.advance(2)
        producer.send(b"x")
        assert states(store, overdue, orphaned) == [("OPEN", None)] * 2
        store.admin.settings.set_reap_policy("overdue")
        clock.advance(2)
        producer.send(b"x")
        assert states(store, overdue, orphaned) == [("ABORTED", "timed-out"), ("OPEN", None)]
        store.admin.transactions.reap_transactions()
        assert states(store, orphaned) == [("ABORTED", "owner-dead")]
