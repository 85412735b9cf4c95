"""The end of a session: by whom it can be ended, and what is left of it."""

from __future__ import annotations

from storage import Store
from storage.disk.view import WriteBatch
from storage.topic import catalogue as topics, state as states
from storage.topic.producers import ownership, session as sessions, session_end


def test_leaving_twice_ends_one_session(store: Store) -> None:
    """And never the session of a producer that was given the number later, by another secret."""
    producer = store.create_producer("t", access_mode="Exclusive", producer_name="owner")
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        (session,) = sessions.every(view, topic_id)
    impostor = sessions.ProducerSession.of(session.fields())
    impostor.renew_token()

    def leave(batch: WriteBatch) -> tuple[int, int]:
        session_end.leave(batch, impostor)
        left = len(list(sessions.every(batch, topic_id)))
        session_end.leave(batch, session)
        session_end.leave(batch, session)
        return left, len(list(sessions.every(batch, topic_id)))

    assert store.connection.write(leave) == (1, 0)
    with store.connection.view() as view:
        state = states.load(view, topic_id)
        last = ownership.find(view, topic_id, state.epoch)
    assert state.owner_session == 0
    assert last is not None
    assert last.ended_by == "closed"
    producer.close()
