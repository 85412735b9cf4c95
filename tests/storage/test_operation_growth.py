"""Everyday changes and looks take as many operations of LMDB with 1,000 of something in a store as with 10."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Store
from storage.topic.producers import session as sessions
from tests.storage.growth_steps import AXES, Scene, counts_of, waiting_producers
from tests.storage.lmdb_operations import counted

FEW, MANY = 10, 1000
SPARE = 40
"""Operations that a further level of blocks may cost, or a list of the first few that has more than ten."""


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.__name__)
def test_operations_do_not_grow(tmp_path: Path, axis: Callable[[Store, int], object]) -> None:
    """Each operation takes few operations of LMDB more in the larger store."""
    counts: list[dict[str, int]] = []
    for number in (FEW, MANY):
        Store.create(tmp_path / str(number))
        with Store.open(tmp_path / str(number)) as store:

            def count(operation: Callable[[], object], store: Store = store) -> int:
                with counted(store) as operations:
                    operation()
                return operations.overall

            counts.append(counts_of(store, axis, number, count))
    few, many = counts
    assert {name: (few[name], many[name]) for name in few if many[name] > few[name] + SPARE} == {}


def test_a_waiting_producer_looks_at_the_first_before_it(tmp_path: Path) -> None:
    """Each of many waiting producers looks after every commit whether the topic is free."""
    counts = []
    for number in (FEW, MANY):
        Store.create(tmp_path / str(number))
        with Store.open(tmp_path / str(number)) as store:
            scene = Scene(store)
            waiting_producers(store, number)
            last = 1 + number
            with counted(store) as operations, store.connection.view() as view:
                first = next(sessions.before(view, 1, store.engine.locks, last), None)
                assert first is not None
                assert first.name == scene.producer.producer_name
            counts.append(operations.overall)
            with store.connection.view() as view:
                assert len(list(sessions.before(view, 1, store.engine.locks, last))) == number
    assert counts[1] <= counts[0]
