"""Sequence ids of producer names that are long gone: forgotten with their messages, and not before."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from storage import EARLIEST, Position, Store
from storage.disk.codec import U64X2
from storage.disk.schema import SEQUENCES
from storage.disk.view import WriteBatch
from storage.limits import SEQUENCE_RETENTION_MS
from storage.process.clock import ManualClock
from tests.model_runs import examples

KEPT_S = SEQUENCE_RETENTION_MS / 1000


def send(store: Store, name: str, *ids: int, topic: str = "t") -> list[bool]:
    """Send a message with each sequence id under a name; whether each was stored."""
    with store.create_producer(topic, producer_name=name, connected=False) as producer:
        return [producer.send(b"m", sequence_id=number).position >= (0, 0) for number in ids]


def ranges(store: Store) -> int:
    with store.connection.view() as view:
        return view.count(SEQUENCES)


def collect(store: Store) -> int:
    """Collect garbage as the dry run says; the ranges that went."""
    expected = store.maintenance.collect_garbage(dry_run=True).collected.forgotten
    done = store.maintenance.collect_garbage().collected.forgotten
    assert done == expected
    return done.sequence_ranges_forgotten


def trim_everything(store: Store) -> None:
    """Remove all messages of `t`, as no subscription holds any."""
    store.admin.topics.set_retention("t", time_ms=0)


def test_ids_go_with_the_messages_after_the_time(store: Store, clock: ManualClock) -> None:
    """Both are needed: no message left, and no use for a week."""
    assert send(store, "a", 7) == [True]
    trim_everything(store)
    clock.advance(KEPT_S - 60)
    assert (collect(store), send(store, "a", 7)) == (0, [False])
    clock.advance(120)
    assert (collect(store), ranges(store)) == (1, 0)
    assert send(store, "a", 7) == [True], "the id counts anew"


def test_ids_of_a_message_that_is_kept_stay(store: Store, clock: ManualClock) -> None:
    """However long ago; and whatever else of the topic is trimmed."""
    store.create_topic("u", ledger_entries_max=2)
    assert send(store, "kept", 5, topic="u") == [True]
    clock.advance(KEPT_S * 3)
    assert collect(store) == 0
    assert send(store, "kept", 5, topic="u") == [False]
    store.admin.subscriptions.create_subscription("u", "s", initial_position=EARLIEST)
    store.admin.topics.set_retention("u", time_ms=0)
    assert (collect(store), send(store, "kept", 5, topic="u")) == (0, [False])


def test_ids_of_a_message_that_began_a_ledger_stay(store: Store, clock: ManualClock) -> None:
    """The ledger before it, which was open when the id was used, is trimmed alone."""
    store.create_topic("u", ledger_entries_max=1)
    send(store, "other", 1, topic="u")
    assert send(store, "kept", 5, topic="u") == [True]
    send(store, "other", 2, topic="u")
    store.admin.subscriptions.create_subscription("u", "s", initial_position=Position(2, 0))
    store.admin.topics.set_retention("u", time_ms=0)
    clock.advance(KEPT_S * 3)
    collect(store)
    assert store.reader("u").read_batch(1)[0].message_id.position == (2, 0)
    assert send(store, "kept", 5, topic="u") == [False]


def test_an_id_used_just_before_an_older_one_keeps_its_own_time(store: Store, clock: ManualClock) -> None:
    """Both are one range, of which the later use counts."""
    send(store, "a", 6)
    trim_everything(store)
    clock.advance(KEPT_S - 60)
    assert (send(store, "a", 5), ranges(store)) == ([True], 1)
    clock.advance(120)
    assert (collect(store), send(store, "a", 5)) == (0, [False])


def test_nothing_is_forgotten_where_everything_is_kept_for_ever(store: Store, clock: ManualClock) -> None:
    send(store, "a", 7)
    store.admin.settings.set_sequence_retention("unset")
    trim_everything(store)
    clock.advance(KEPT_S * 100)
    assert (collect(store), send(store, "a", 7)) == (0, [False])


def test_nothing_goes_for_its_age_while_the_clocks_disagree(store: Store, clock: ManualClock) -> None:
    send(store, "a", 7)
    trim_everything(store)
    store.maintenance.collect_garbage()
    clock.wall_now_ns += SEQUENCE_RETENTION_MS * 2_000_000
    assert collect(store) == 0
    assert store.maintenance.collect_garbage(trust_clock=True).collected.forgotten.sequence_ranges_forgotten


def test_the_highest_id_of_a_name_goes_last(store: Store, clock: ManualClock) -> None:
    """The ids that the store assigns go on from it as long as any id of the name is kept."""
    send(store, "a", 90)
    trim_everything(store)
    clock.advance(KEPT_S / 2)
    send(store, "a", 3)
    clock.advance(KEPT_S / 2 + 1)
    assert collect(store) == 0, "90 is old and the highest; 3 was used within the time"
    with store.create_producer("t", producer_name="a", connected=False) as producer:
        assert producer.send(b"next") and producer.last_sequence_id == 91
    clock.advance(KEPT_S + 1)
    assert (collect(store), ranges(store)) == (2, 0)


def test_scattered_ids_do_not_pile_up(store: Store, clock: ManualClock) -> None:
    """Every other id is a range of its own; old ones go although the name goes on publishing."""
    trim_everything(store)
    for turn in range(4):
        send(store, "a", *range(turn * 100, turn * 100 + 40, 2))
        clock.advance(KEPT_S / 2 + 1)
        collect(store)
        assert ranges(store) <= 40


def test_writers_forget_on_their_way(store: Store, clock: ManualClock) -> None:
    """A process that writes for long needs no gc."""
    trim_everything(store)
    for number in range(50):
        send(store, f"job-{number}", 0)
    clock.advance(KEPT_S + 1)
    for _ in range(4):
        clock.advance(1)
        send(store, "other", 1)
    assert ranges(store) == 1


def test_a_range_of_an_older_store_counts_from_the_first_look(store: Store, clock: ManualClock) -> None:
    """Format 1 noted no use: the ids are kept for the whole time after the first gc that meets them."""
    send(store, "a", 7)
    trim_everything(store)

    def age(batch: WriteBatch) -> None:
        key, payload = next(batch.scan(SEQUENCES))
        batch.put(SEQUENCES, key, U64X2.pack(*U64X2.unpack_from(payload)))

    store.connection.write(age)
    clock.advance(KEPT_S * 2)
    assert collect(store) == 0
    clock.advance(KEPT_S + 1)
    assert (collect(store), ranges(store)) == (1, 0)


class TestAgainstAModel:
    """Random histories of names, times, trimming and gc."""

    @settings(max_examples=examples(40), deadline=None)
    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("send"), st.sampled_from("ab"), st.integers(0, 6)),
                st.tuples(st.just("wait"), st.sampled_from([1, 30, 61]), st.none()),
                st.tuples(st.just("trim"), st.none(), st.none()),
                st.tuples(st.just("gc"), st.none(), st.none()),
            ),
            min_size=10,
            max_size=40,
        )
    )
    def test_an_id_is_new_only_once_it_may_be(
        self, tmp_path_factory: object, steps: list[tuple[str, object, object]]
    ) -> None:
        """Sent again, an id of a message that is kept, or that was used within the time, stores nothing."""
        clock = ManualClock()
        place = str(tmp_path_factory.mktemp("model") / "store")  # type: ignore[attr-defined]
        Store.create(place, clock=clock)
        with Store.open(place, clock=clock) as store:
            store.create_topic("t", ledger_entries_max=2)
            store.admin.settings.set_sequence_retention(60_000)
            used: dict[tuple[str, int], float] = {}
            now = 0.0
            for what, first, second in steps:
                if what == "send":
                    name, number = str(first), int(second)  # type: ignore[call-overload]
                    is_new = send(store, name, number) == [True]
                    age = now - used.get((name, number), -1e9)
                    assert is_new or (name, number) in used
                    assert not is_new or age >= 60 or (name, number) not in used
                    if is_new:
                        used[name, number] = now
                elif what == "wait":
                    clock.advance(float(first))  # type: ignore[arg-type]
                    now += float(first)  # type: ignore[arg-type]
                elif what == "trim":
                    store.admin.topics.truncate_topic("t")
                else:
                    collect(store)
            assert store.maintenance.verify_store() == []
