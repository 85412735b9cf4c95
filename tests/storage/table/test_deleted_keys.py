"""Deleted keys of tables: gc removes them once the window has passed, and no read inside the window notices."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from storage import Store, Table
from storage.disk.schema import ROWS, VERSIONS
from storage.process.clock import ManualClock
from tests.model_runs import examples

WINDOW_S = 100
KEYS = [b"a", b"a\0", b"b", b"cccccccc", b"ccccccccc"]
STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("delete"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, 30, 60, 101]), st.none()),
    st.tuples(st.just("gc"), st.none(), st.none()),
)


class Past:
    """A table, and the value of every key after each commit."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        store.create_table("model")
        self.table: Table = store.table("model")
        self.current: dict[bytes, bytes] = {}
        self.commits: list[tuple[int, dict[bytes, bytes]]] = []

    def write(self, what: str, key: bytes, in_txn: bool) -> None:
        value = b"%d" % len(self.commits) if what == "put" else None
        if in_txn:
            with self.store.transaction() as txn:
                self.table.put(key, value, txn=txn) if value else self.table.delete(key, txn=txn)
            version = self.table.versions(key)[0].version_ns
        else:
            version = self.table.put(key, value) if value else self.table.delete(key)
        self.current = {name: kept for name, kept in self.current.items() if name != key}
        if value is not None:
            self.current[key] = value
        self.commits.append((version, dict(self.current)))

    def collect(self) -> None:
        """Collect garbage; every read inside the window answers as before, and as the model does."""
        start = self.clock.wall_ns() - WINDOW_S * 1_000_000_000
        points = sorted({start, *(version + more for version, _ in self.commits for more in (-1, 0))})
        inside = [at for at in points if start <= at <= self.clock.wall_ns()]
        before = {at: self._read(at) for at in inside}
        self.store.maintenance.collect_garbage()
        for at in inside:
            assert self._read(at) == before[at] == self._expected(at)
        assert {row.key: row.value for row in self.table.scan()} == self.current

    def _read(self, at: int) -> dict[bytes, bytes | None]:
        rows = {row.key: row.value for row in self.table.scan(at=at)}
        assert rows == {key: value for key in KEYS if (value := self.table.get(key, at=at)) is not None}
        return rows

    def _expected(self, at: int) -> dict[bytes, bytes]:
        return next((values for version, values in reversed(self.commits) if version <= at), {})


@settings(max_examples=examples(40), deadline=None)
@given(steps=st.lists(STEPS, min_size=8, max_size=40))
def test_no_read_inside_the_window_notices(
    tmp_path_factory: object, steps: list[tuple[str, object, object]]
) -> None:
    """Keys and ranges, at every version and just before it, whatever was deleted, written again and collected."""
    clock = ManualClock()
    place = str(tmp_path_factory.mktemp("keys") / "store")  # type: ignore[attr-defined]
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as store:
        store.admin.settings.set_table_retention(WINDOW_S * 1000)
        past = Past(store, clock)
        for what, argument, in_txn in steps:
            if what == "wait":
                clock.advance(float(argument))  # type: ignore[arg-type]
            elif what == "gc":
                past.collect()
            else:
                past.write(what, argument, bool(in_txn))  # type: ignore[arg-type]
        past.collect()
        clock.advance(WINDOW_S * 2)
        past.collect()
        with store.connection.view() as view:
            assert (view.count(ROWS), view.count(VERSIONS)) == (len(past.current), 0)
        assert store.maintenance.verify_store() == []


def test_ever_new_keys_leave_nothing(store: Store, table: Table, clock: ManualClock) -> None:
    """Put and deleted, alone and in transactions: after the window the file is as large as before."""
    store.admin.settings.set_table_retention(WINDOW_S * 1000)
    used = []
    for turn in range(12):
        for number in range(200):
            table.put(b"%d-%d" % (turn, number), b"v" * 100)
        with store.transaction() as txn:
            for number in range(200):
                table.delete(b"%d-%d" % (turn, number), txn=txn)
        clock.advance(86_401)  # the outcomes of the writes are kept for a day
        store.maintenance.collect_garbage()
        with store.connection.view() as view:
            assert (view.count(ROWS), view.count(VERSIONS)) == (0, 0)
        used.append(store.reports.store_info().used_bytes)
    assert used[-1] <= used[3] * 1.05, "audit records aside"
