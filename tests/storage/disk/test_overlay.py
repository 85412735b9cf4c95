"""Changes over a read transaction: `storage/disk/overlay.py`, as a write transaction of LMDB answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lmdb
import pytest
from hypothesis import given, settings, strategies as st

from storage.disk.overlay import Overlay
from tests.model_runs import examples

KEYS = [bytes((number,)) for number in range(1, 13)]
_key = st.sampled_from(KEYS)
_steps = st.one_of(
    st.tuples(st.just("put"), _key, st.binary(min_size=1, max_size=2)),
    st.tuples(st.sampled_from(["delete", "get", "set_range", "scan", "scan back"]), _key),
    st.tuples(st.sampled_from(["first", "last", "next", "prev", "delete here", "stat"])),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two databases of one environment."""
    with lmdb.open(str(tmp_path_factory.mktemp("overlay")), max_dbs=2, sync=False) as opened:
        yield opened


def take(transaction: Any, cursor: Any, db: Any, step: tuple[Any, ...]) -> Any:
    """One call, and its answer with the place of the cursor."""
    name, *arguments = step
    if name == "put":
        return transaction.put(*arguments, db=db) is False
    if name in ("delete", "get"):
        return getattr(transaction, name)(*arguments, db=db)
    if name == "stat":
        return transaction.stat(db)["entries"]
    if name in ("scan", "scan back"):
        with transaction.cursor(db=db) as other:
            if not other.set_range(arguments[0]):
                return None
            return list(other.iternext() if name == "scan" else other.iterprev())
    if name == "delete here":
        return cursor.key() != b"" and (cursor.delete(), cursor.key(), cursor.value())
    return getattr(cursor, name)(*arguments), cursor.key(), cursor.value()


@settings(max_examples=examples(300))
@given(st.dictionaries(_key, st.binary(min_size=1, max_size=2)), st.lists(_steps, max_size=30))
def test_an_overlay_answers_as_a_write_transaction(
    environment: Any, stored: dict[bytes, bytes], steps: list[tuple[Any, ...]]
) -> None:
    """But for a cursor without a place, and one whose record is removed by its key: no batch uses them so."""
    db = environment.open_db(b"a")
    with environment.begin(write=True) as transaction:
        transaction.drop(db, delete=False)
        for key, value in stored.items():
            transaction.put(key, value, db=db)
    transaction, view = environment.begin(write=True), environment.begin()
    try:
        overlay = Overlay(view)
        with transaction.cursor(db=db) as expected, overlay.cursor(db=db) as cursor:
            for step in steps:
                if step[0] in ("next", "prev", "delete here") and not cursor.key():
                    continue
                assert take(overlay, cursor, db, step) == take(transaction, expected, db, step), step
                if step[0] in ("put", "delete"):
                    assert cursor.first() == expected.first()
        assert overlay.id() == transaction.id()
    finally:
        transaction.abort()
        view.abort()
    with environment.begin() as view:
        assert dict(view.cursor(db=db)) == stored


def test_removed_stretches_are_jumped_over(environment: Any) -> None:
    """A first record is found by few steps behind many removed ones, wherever the search begins."""
    db = environment.open_db(b"b")
    with environment.begin(write=True) as transaction:
        for number in range(10_000):
            transaction.put(number.to_bytes(4, "big"), b"x", db=db)
    with environment.begin() as view:
        overlay = Overlay(view)
        for number in range(9_999):
            with overlay.cursor(db=db) as cursor:
                assert cursor.set_range(b"\0") and cursor.key() == number.to_bytes(4, "big")
                cursor.delete()
        with overlay.cursor(db=db) as cursor:
            assert cursor.last() and not cursor.prev()
        assert overlay.stat(db)["entries"] == 1
