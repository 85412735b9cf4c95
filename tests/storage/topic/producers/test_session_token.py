"""Tokens: use of a session by processes that did not open the session."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import ProducerFenced, SessionNotFound, TxnctlError
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, WAITING
from tests.storage.topic.producers.rivals import Rivals, assert_fenced, publish, records, values


class TestBorrowed:
    """Publishing through a session that another process holds, as under `producers lead`."""

    def test_others_publish_through_the_session_of_a_living_process(
        self, store: Store, rivals: Rivals
    ) -> None:
        """Whoever has the token; the process that leads publishes too."""
        leader = rivals.produce(WAITING, producer_name="leader")
        leader.send(b"1")
        publish(rivals, leader.session, b"2")
        leader.send(b"3")
        messages = list(store.reader("t"))
        assert [(m.value, m.epoch, m.sequence_id) for m in messages] == [
            (b"1", 0, 0),
            (b"2", 0, 1),
            (b"3", 0, 2),
        ]
        assert {m.producer_name for m in messages} == {"leader"}

    def test_the_death_of_that_process_ends_it(self, store: Store, rivals: Rivals) -> None:
        """Even if nobody came yet: a leader's commands must not go on without the leader."""
        process = rivals.open()
        leader = process.create_producer("t", access_mode=EXCLUSIVE)
        borrower = rivals.open().session_producer("t", leader.session)
        borrower.send(b"1")
        process.close()
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                borrower.send(b"never stored")
        with pytest.raises(ProducerFenced):
            publish(rivals, leader.session)
        assert values(store) == [b"1"]

    def test_the_close_of_the_session_ends_it(self, store: Store, rivals: Rivals) -> None:
        """And so does its eviction."""
        leader = rivals.produce(EXCLUSIVE)
        borrower = rivals.open().session_producer("t", leader.session)
        borrower.send(b"1")
        leader.close()
        assert_fenced(borrower)
        leader = rivals.produce(EXCLUSIVE)
        borrower = rivals.open().session_producer("t", leader.session)
        rivals.produce(FENCING)
        assert_fenced(borrower)

    def test_a_waiting_session_is_not_there_yet(self, store: Store, rivals: Rivals) -> None:
        """Its token does not let anybody publish before its turn."""
        owner = rivals.produce(EXCLUSIVE)
        rivals.wait()
        (row,) = [row for row in row_json(store.reports.list_producers("t")) if row["isWaiting"]]
        guess = owner.session.split("-")
        guess[1] = str(row["sessionId"])
        with pytest.raises(TxnctlError) as caught:
            publish(rivals, "-".join(guess))
        assert caught.value.exit_code in (3, 4)

    @pytest.mark.parametrize("part", [0, 1, 2])
    def test_a_guessed_token_is_no_token(self, store: Store, rivals: Rivals, part: int) -> None:
        """Topic, number and secret must all be right; a wrong one disturbs nobody."""
        owner = rivals.produce(EXCLUSIVE)
        owner.send(b"x")
        store.create_topic("u")
        token = owner.session.split("-")
        token[part] = {0: "2", 1: str(int(token[1]) + 1), 2: "00" * (len(token[2]) // 2)}[part]
        before = records(store)
        for topic in ("t", "u") if part == 0 else ("t",):
            with pytest.raises(TxnctlError) as caught:
                publish(rivals, "-".join(token), topic=topic)
            assert caught.value.exit_code in (2, 3, 4)
        for call in (store.reports.show_session, store.admin.producers.close_session):
            with pytest.raises(TxnctlError):
                call("-".join(token))
        assert records(store) == before
        owner.send(b"still mine")

    def test_a_token_is_of_one_topic(self, store: Store, rivals: Rivals) -> None:
        """It opens no other topic."""
        store.create_topic("u")
        owner = rivals.produce(EXCLUSIVE)
        with pytest.raises(TxnctlError) as caught:
            publish(rivals, owner.session, topic="u")
        assert caught.value.exit_code in (2, 3, 4)
        assert values(store, "u") == []

    def test_the_session_tells_of_itself(self, store: Store, rivals: Rivals) -> None:
        """A row as in `producer_rows`, of whatever kind of session."""
        owner = rivals.produce(EXCLUSIVE, producer_name="me")
        row = row_json(store.reports.show_session(owner.session))
        assert (row["producerName"], row["epoch"], row["isOwner"], row["state"], row["leaseMs"]) == (
            "me", 0, True, "alive", None,
        )  # fmt: skip
        owner.close()
        with pytest.raises(SessionNotFound):
            store.reports.show_session(owner.session)
