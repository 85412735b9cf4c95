"""The last publish of each session, known without a write for each message."""

from __future__ import annotations

from storage import Store
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics, state as states
from storage.topic.producers import session as sessions
from storage.topic.producers.last_publish import last_publish_ms


def test_each_session_keeps_the_time_of_its_own(store: Store, clock: ManualClock) -> None:
    """The latest publisher's is the topic's; the others' went into their records when the next one published."""
    first, second = (store.create_producer("t", producer_name=name) for name in ("first", "second"))
    silent = store.create_producer("t", producer_name="silent")
    times = []
    for producer in (first, second, second):
        clock.advance(1)
        producer.send(b"x")
        times.append(clock.wall_ms())
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        state = states.load(view, topic_id)
        known = {each.name: last_publish_ms(state, each) for each in sessions.every(view, topic_id)}
    assert known == {"first": times[0], "second": times[2], "silent": None}
    silent.close()
