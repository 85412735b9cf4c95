"""The audit trail: expiries are in it, each in the commit that ends the transaction, and it has bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import EARLIEST, LATEST, MessageId, Store, audit_trail
from storage.audit_trail import Kind
from storage.disk.schema import AUDIT
from storage.errors import InvalidValue, TransactionTimedOut
from storage.limits import REASON_CHARACTERS_MAX
from storage.process.clock import ManualClock
from tests.row_json import row_json


class TestExpiry:
    """Transactions that nobody ended."""

    def test_a_reaped_transaction_leaves_a_record(self, store: Store, clock: ManualClock) -> None:
        """Whose it was, why it ended, what was dropped, and who came by."""
        txn = store.begin_transaction(timeout=1, labels={"job": "nightly"})
        store.create_producer("t").send_batch([b"1", b"2"], txn=txn)
        clock.advance(2.0)
        store.create_producer("t").send(b"3")
        (row,) = row_json(store.reports.list_audit_records())
        assert (row["action"], row["target"], row["reason"]) == ("transaction expired", str(txn), "timed-out")
        assert row["by"] and row["effects"] == {
            "owner": row_json(store.reports.show_transaction(txn))["owner"],
            "labels": {"job": "nightly"},
            "messagesDiscarded": 2,
            "acknowledgementsReleased": 0,
        }

    def test_one_that_its_own_client_finds_too_late(self, store: Store, clock: ManualClock) -> None:
        """The refusal, the abort and the record are one commit."""
        txn = store.begin_transaction(timeout=1)
        clock.advance(2.0)
        with pytest.raises(TransactionTimedOut):
            store.commit_transaction(txn)
        assert [(row["target"], row["reason"]) for row in row_json(store.reports.list_audit_records())] == [
            (str(txn), "timed-out")
        ]

    def test_what_was_asked_for_is_no_expiry(self, store: Store) -> None:
        """Commits, and aborts by their own client, leave nothing."""
        store.commit_transaction(store.begin_transaction())
        with pytest.raises(ZeroDivisionError), store.transaction():
            _ = 1 // 0
        assert [row["action"] for row in row_json(store.reports.list_audit_records())] == []


class TestReasons:
    """Why somebody did it: kept whole, or refused before anything is done."""

    @pytest.mark.parametrize("reason", ["x" * (REASON_CHARACTERS_MAX + 1), "no text: \udcff", "..."])
    def test_one_that_cannot_be_kept_is_refused(self, store: Store, tmp_path: Path, reason: str) -> None:
        """By every change that takes one; nothing is changed."""
        store.create_producer("t").send(b"x")
        store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
        store.create_table("a")
        txn, attached = store.begin_transaction(), store.transaction()
        session = row_json(store.open_session("t", access_mode="Shared"))["session"]
        store.maintenance.backup_store(tmp_path / "backup")
        admin, calls = store.admin, list[Callable[[], object]]()
        calls += [
            lambda: row_json(store.admin.transactions.abort_transaction(txn, reason=reason)),
            lambda: attached.abort(reason),
            lambda: row_json(store.admin.transactions.reap_transactions(reason=reason)),
            lambda: row_json(store.admin.producers.close_session(session, reason=reason)),
            lambda: store.restore(tmp_path / "backup", tmp_path / "other", reason=reason),
            lambda: row_json(store.maintenance.compact_store(reason=reason)),
            lambda: row_json(store.maintenance.collect_garbage(reason=reason)),
            lambda: row_json(
                admin.acknowledgements.acknowledge_messages("t", "s", [MessageId(1, 0)], reason=reason)
            ),
            lambda: row_json(
                admin.acknowledgements.negative_acknowledge_messages(
                    "t", "s", [MessageId(1, 0)], reason=reason
                )
            ),
            lambda: row_json(admin.topics.delete_topic("t", force=True, reason=reason)),
            lambda: row_json(admin.tables.delete_table("a", reason=reason)),
            lambda: row_json(admin.subscriptions.delete_subscription("t", "s", reason=reason)),
            lambda: row_json(admin.producers.fence_producers("t", reason=reason)),
            lambda: row_json(admin.subscriptions.seek_subscription("t", "s", LATEST, reason=reason)),
            lambda: row_json(admin.settings.set_reap_policy("manual", reason=reason)),
        ]
        before = row_json(store.reports.store_info())["commits"]
        for call in calls:
            with pytest.raises(InvalidValue, match="reason"):
                call()
        assert (
            row_json(store.reports.store_info())["commits"],
            row_json(store.reports.list_audit_records()),
        ) == (before, [])
        assert not (tmp_path / "other").exists()
        store.admin.producers.close_session(session)

    def test_a_forced_acknowledgement_tells_its_own(self, store: Store) -> None:
        """It aborts a transaction of somebody else."""
        store.create_producer("t").send(b"x")
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        message, txn = consumer.receive(timeout=0), store.begin_transaction()
        consumer.acknowledge(message, txn=txn)
        done = row_json(
            store.admin.acknowledgements.acknowledge_messages(
                "t", "s", [message.message_id], force=True, reason="it hangs"
            )
        )
        (row,) = row_json(store.reports.list_audit_records())
        assert (row["action"], row["reason"]) == ("subscriptions ack --force", "it hangs")
        assert (
            row["effects"]
            == {"transactionsAborted": [str(txn)]}
            == {"transactionsAborted": done["transactionsAborted"]}
        )

    def test_trusting_the_clock_is_a_change(self, store: Store, clock: ManualClock) -> None:
        """Also where nothing is removed; gc that does nothing at all is none."""
        store.maintenance.collect_garbage()
        assert row_json(store.reports.list_audit_records()) == []
        clock.wall_now_ns += 3600 * 10**9
        store.maintenance.collect_garbage(trust_clock=True, reason="ntpd was off")
        (row,) = row_json(store.reports.list_audit_records())
        assert (row["action"], row["reason"], row["effects"]["trustClock"]) == (
            "store gc",
            "ntpd was off",
            True,
        )

    def test_who_comes_by_is_the_program_that_opened_the_store(self, path: str, clock: ManualClock) -> None:
        """An expiry is ascribed as everything else is that it does."""
        with Store.open(path, clock=clock, program="nightly job") as store:
            store.begin_transaction(timeout=1)
            clock.advance(2)
            store.admin.settings.set_reap_policy("all")
            assert {row["by"] for row in row_json(store.reports.list_audit_records())} == {
                str(store.connection.identity)
            }
            assert "nightly job" in row_json(store.reports.list_audit_records())[0]["by"]


class TestBounds:
    """It does not grow for ever."""

    def test_expiries_are_forgotten_and_changes_are_not(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each kind by its own bound, in the commit that adds one."""
        monkeypatch.setitem(audit_trail._KEPT, Kind.EXPIRY, 3)
        monkeypatch.setitem(audit_trail._KEPT, Kind.CHANGE, 8)
        owner = store.connection.identity
        for number in range(1, 11):
            kind = Kind.CHANGE if number % 5 == 1 else Kind.EXPIRY
            store.connection.write(
                lambda batch, kind=kind: audit_trail.record(batch, owner, kind.name, "x", None, {}, kind)
            )
        assert [row["number"] for row in row_json(store.reports.list_audit_records())] == [10, 9, 8, 6, 1]
        assert [row["number"] for row in row_json(store.reports.list_audit_records(2))] == [10, 9]
        store.connection.write(lambda batch: audit_trail.record(batch, owner, "CHANGE", "x", None, {}))
        assert [row["number"] for row in row_json(store.reports.list_audit_records())] == [11, 10, 9, 8, 6]

    def test_a_lowered_bound_is_reached(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two are removed for each that is added."""
        owner = store.connection.identity

        def add() -> None:
            store.connection.write(
                lambda batch: audit_trail.record(batch, owner, "x", "x", None, {}, Kind.EXPIRY)
            )

        for _ in range(20):
            add()
        monkeypatch.setitem(audit_trail._KEPT, Kind.EXPIRY, 5)
        for _ in range(20):
            add()
        with store.connection.view() as view:
            assert view.count(AUDIT) == 5
