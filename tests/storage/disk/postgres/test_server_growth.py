"""Everyday changes and looks take as many statements and rows of a server with 300 of something as with 10."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from storage import Store
from tests.postgres_cluster import Cluster
from tests.storage.growth_steps import AXES, counts_of
from tests.storage.server_statements import counted_statements

FEW, MANY = 10, 300
SPARE_STATEMENTS, SPARE_ROWS = 30, 60
"""A cursor reads ahead, and a list of the first few may have more than ten."""


@pytest.fixture
def stores(postgres_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """URLs of two empty stores."""
    names = [f"growth{size}{request.node.callspec.id}".lower()[:40] for size in (FEW, MANY)]
    for name in names:
        Store.create(postgres_cluster.url(name), durability="local")
    yield [postgres_cluster.url(name) for name in names]
    for name in names:
        postgres_cluster.psql(f"SET client_min_messages = error; DROP SCHEMA {name} CASCADE")


@pytest.mark.needs_program("initdb")
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.__name__)
def test_operations_do_not_grow(stores: list[str], axis: Callable[[Store, int], object]) -> None:
    """Each operation takes few statements and rows more in the larger store, just after a commit of another process."""
    counts: list[dict[str, tuple[int, int]]] = []
    for number, url in zip((FEW, MANY), stores, strict=True):
        with Store.open(url) as store:

            def count(operation: Callable[[], object], url: str = url) -> tuple[int, int]:
                with Store.open(url) as rival:
                    rival.table("rival", create=True).put(b"k", b"v")
                with counted_statements() as statements:
                    operation()
                return statements.number, statements.rows

            counts.append(counts_of(store, axis, number, count))
    few, many = counts
    grown = {
        name: (few[name], many[name])
        for name in few
        if many[name][0] > few[name][0] + SPARE_STATEMENTS or many[name][1] > few[name][1] + SPARE_ROWS
    }
    assert grown == {}
