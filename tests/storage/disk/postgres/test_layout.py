"""Codes of databases never change: records of existing stores are found by them."""

from __future__ import annotations

import re
from itertools import pairwise

from storage.disk import schema
from storage.disk.postgres import layout
from storage.disk.postgres.layout import CODES, RecordPlace


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


def test_records_that_every_append_changes_are_appended() -> None:
    """States and cursors; entries lie in a table of their own."""
    tables = {database.name: RecordPlace(database).table for database in schema.ALL}
    assert {name for name, table in tables.items() if table == layout.TABLE_HEADS} == {"heads", "cursors"}
    assert {name for name, table in tables.items() if table == layout.TABLE_ENTRIES} == {"entries"}


def test_statements_are_named_once() -> None:
    """Two texts under one name would be one prepared statement."""
    named = [value for value in vars(layout).values() if isinstance(value, tuple) and len(value) == 2]
    statements = [value for value in named if all(isinstance(part, bytes) for part in value)]
    assert len({name for name, _ in statements}) == len(statements) > 20
    assert all(re.fullmatch(rb"[a-z_]+", name) for name, _ in statements)
