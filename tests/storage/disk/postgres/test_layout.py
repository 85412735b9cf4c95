"""Codes of databases never change: records of existing stores are found by them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from storage import Store
from storage.disk import schema
from storage.disk.postgres import layout
from storage.disk.postgres.layout import CODES, RecordPlace
from storage.errors import StoreInvalid
from storage.values.receipt import DUPLICATE
from tests.postgres_cluster import Cluster


def test_every_database_has_a_code_of_its_own() -> None:
    """A new database gets the next one."""
    assert CODES.keys() == {database.name for database in schema.ALL}
    assert sorted(CODES.values()) == list(range(1, len(CODES) + 1))


def test_codes_of_stores_in_use_stay() -> None:
    """Some of them, pinned."""
    pinned = {
        "store": 1,
        "heads": 2,
        "topics": 3,
        "entries": 5,
        "cursors": 18,
        "rows": 29,
        "timed_blocks": 46,
    }
    assert {name: CODES[name] for name in pinned} == pinned


def test_keys_of_databases_do_not_meet() -> None:
    """The end of one is at most the beginning of the next."""
    places = sorted((RecordPlace(database) for database in schema.ALL), key=lambda place: place.prefix)
    for before, after in pairwise(places):
        assert before.prefix < before.end <= after.prefix


def test_records_that_change_again_and_again_are_read_newest_first() -> None:
    """States, cursors, sessions, sequence ids and windows; entries lie in a table of their own."""
    tables = {database.name: RecordPlace(database).table for database in schema.ALL}
    assert {name for name, table in tables.items() if table == layout.TABLE_HEADS} == {
        "heads", "cursors", "producers", "sequences", "consumers",
    }  # fmt: skip
    assert {name for name, table in tables.items() if table == layout.TABLE_ENTRIES} == {"entries"}


def test_a_store_of_an_early_build_is_brought_up_to_date(url: str, postgres_cluster: Cluster) -> None:
    """By the first process that opens the store for writing; a reader is told."""
    with Store.open(url) as store:
        store.create_topic("t")
        producer = store.create_producer("t", producer_name="one")
        producer.send(b"x", sequence_id=1)
    schema = url.rpartition("=")[2]
    kept = " OR ".join(f"substr(k, 1, 1) = '\\x{code:02x}'" for code in (6, 8, 23))
    postgres_cluster.psql(
        f"SET search_path = {schema}; WITH moved AS (DELETE FROM heads WHERE {kept} RETURNING k, v)"
        " INSERT INTO kv SELECT k, v FROM moved;"
        " ALTER TABLE marks DROP COLUMN n, ADD PRIMARY KEY (consumer)"
    )
    assert int(postgres_cluster.psql(f"SELECT count(*) FROM {schema}.kv WHERE {kept}")) > 0
    with pytest.raises(StoreInvalid, match="was made by an early build") as raised:
        Store.open(url, read_only=True)
    assert "for writing" in str(raised.value.hint)
    with Store.open(url) as store, store.create_producer("t", producer_name="one") as producer:
        assert producer.send(b"y", sequence_id=1) == DUPLICATE
    assert postgres_cluster.psql(f"SELECT count(*) FROM {schema}.kv WHERE {kept}") == "0"
    with Store.open(url, read_only=True) as store:
        assert store.topics() == ["t"]


def test_statements_are_named_once() -> None:
    """Two texts under one name would be one prepared statement."""
    named = [value for value in vars(layout).values() if isinstance(value, tuple) and len(value) == 2]
    statements = [value for value in named if all(isinstance(part, bytes) for part in value)]
    assert len({name for name, _ in statements}) == len(statements) > 20
    assert all(re.fullmatch(rb"[a-z_]+", name) for name, _ in statements)
