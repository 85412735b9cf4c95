"""A cursor of a snapshot answers as a sorted list does, whatever was read ahead."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given, settings, strategies as st

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.snapshot import Changes, Snapshot
from storage.disk.schema import CONFLICTS, ENTRIES, TXNS
from storage.disk.view import WriteBatch

KEYS = [b"%03d" % number for number in range(0, 120, 2)]
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("range"), st.integers(0, 121).map(lambda number: b"%03d" % number)),
        st.tuples(st.sampled_from(["next", "prev", "first", "last"]), st.just(b"")),
    ),
    max_size=25,
)


def filled(store: Store) -> PostgresEnvironment:
    """The environment of a store with records in a database that nothing else uses."""

    def change(batch: WriteBatch) -> None:
        for key in KEYS:
            batch.put(CONFLICTS, key, b"of " + key)

    store.connection.write(change)
    environment = store.connection.environment
    assert isinstance(environment, PostgresEnvironment)
    return environment


def emptied(batch: WriteBatch) -> None:
    """Remove the records, which no conflict has written."""
    batch.delete_prefix(CONFLICTS, b"")


def moved(at: int | None, move: str, key: bytes) -> int | None:
    """Where a cursor over the keys is after a move."""
    last = len(KEYS) - 1
    if move == "range":
        found = bisect_left(KEYS, key)
        return found if found <= last else None
    if move in ("first", "last"):
        return 0 if move == "first" else last
    if at is None:
        return last if move == "prev" else None
    after = at + (1 if move == "next" else -1)
    return after if 0 <= after <= last else None


def test_moves_agree_with_a_sorted_list(store: Store) -> None:
    """Long and short stretches, both directions, restarts in the middle."""
    environment = filled(store)

    @settings(deadline=None)
    @given(moves=MOVES)
    def agree(moves: list[tuple[str, bytes]]) -> None:
        with environment._opened_session() as session:
            cursor = Snapshot(session, 0, b"", KeptReads(0)).cursor(db=environment.places[CONFLICTS.name])
            at: int | None = None
            for move, key in moves:
                is_found = {
                    "range": lambda key=key: cursor.set_range(key), "next": cursor.next, "prev": cursor.prev,
                    "first": cursor.first, "last": cursor.last,
                }[move]()  # fmt: skip
                at = moved(at, move, key)
                assert (is_found, cursor.key()) == (at is not None, b"" if at is None else KEYS[at])
                if at is None:
                    break

    agree()
    store.connection.write(emptied)


def test_a_bounded_cursor_agrees_with_the_records_between_its_bounds(store: Store) -> None:
    """Whatever moves led there; the database has records before and behind."""
    environment = filled(store)
    bounds = st.integers(0, 121).map(lambda number: b"%03d" % number)

    @settings(deadline=None)
    @given(low=bounds, end=bounds, starts=st.lists(bounds, max_size=6))
    def agree(low: bytes, end: bytes, starts: list[bytes]) -> None:
        inside = [key for key in KEYS if low <= key < end]
        with environment._opened_session() as session:
            snapshot = Snapshot(session, 0, b"", KeptReads(0))
            cursor = snapshot.cursor(db=environment.places[CONFLICTS.name], low=low, end=end)
            assert (cursor.first(), [key for key, _ in cursor.iternext()]) == (bool(inside), inside)
            for start in starts:
                rest = [key for key in inside if key >= start]
                assert cursor.set_range(max(low, start)) == bool(rest)
                assert cursor.key() == (rest[0] if rest else b"")
                before = [key for key in inside if key < start]
                assert (cursor.prev() if rest else cursor.last()) == bool(before or (inside and not rest))
                assert [key for key, _ in cursor.iterprev()] == before[::-1]
            assert cursor.last() == bool(inside)
            assert [key for key, _ in cursor.iterprev()] == inside[::-1]

    agree()
    store.connection.write(emptied)


def test_iteration_reads_every_record_once_in_either_direction(store: Store) -> None:
    """Over several stretches."""
    environment = filled(store)
    place = environment.places[CONFLICTS.name]
    with environment._opened_session() as session:
        cursor = Snapshot(session, 0, b"", KeptReads(0)).cursor(db=place)
        assert cursor.set_range(b"010")
        assert [key for key, _ in cursor.iternext()] == KEYS[5:]
        assert cursor.last()
        assert [key for key, _ in cursor.iterprev()] == KEYS[::-1]
    store.connection.write(emptied)


def test_a_snapshot_asks_for_a_record_once(store: Store) -> None:
    """Also for one that is not there; entries are asked for each time, as they may be large."""
    environment = filled(store)
    with environment._opened_session() as session:
        snapshot = Snapshot(session, 1, b"", KeptReads(1))
        place = environment.places[CONFLICTS.name]
        first = snapshot.get(KEYS[0], db=place)
        assert first is not None
        assert first.endswith(b"of " + KEYS[0])
        assert snapshot.get(b"absent", db=place) is None
        assert snapshot.fetch([KEYS[0], b"absent", KEYS[1]], place)[:2] == [first, None]
        assert {place.prefix + KEYS[0], place.prefix + b"absent"} <= snapshot._known.keys()
        assert snapshot.get(b"x", db=environment.places[ENTRIES.name]) is None
        assert environment.places[ENTRIES.name].prefix + b"x" not in snapshot._known
    store.connection.write(emptied)


def test_changes_count_without_asking_for_each_put(store: Store) -> None:
    """New and removed records count, replaced ones do not; only databases with changes are told."""
    environment = filled(store)
    with environment._opened_session() as session:
        changes = Changes(Snapshot(session, 2, b"", KeptReads(1)))
        place = environment.places[CONFLICTS.name]
        changes.put(KEYS[0], b"replaced", db=place)
        changes.put(b"new", b"value", db=place)
        assert changes.delete(KEYS[1], db=place)
        assert not changes.delete(b"absent", db=place)
        assert changes.get(KEYS[1], db=place) is None
        assert changes.stat(place)["entries"] == len(KEYS)
        assert changes.get(b"0", db=environment.places[TXNS.name]) is None
        assert changes.changed() == {place: {KEYS[0]: b"replaced", b"new": b"value", KEYS[1]: None}}
    store.connection.write(emptied)
