"""The list of databases: what is on disk cannot be changed by accident."""

from __future__ import annotations

from pathlib import Path

from storage.disk import schema
from storage.disk.schema import ALL, ENTRIES, ENTRY_HEADER_BYTES, Database


def test_every_database_is_in_the_list_once() -> None:
    """A store is created with exactly those."""
    declared = [value for value in vars(schema).values() if isinstance(value, Database)]
    assert sorted(map(repr, declared)) == sorted(map(repr, ALL))
    assert len({database.name for database in ALL}) == len(ALL)


def test_a_record_of_one_database_is_damage_in_another() -> None:
    """Because each one's checksums begin with a seed of its own."""
    assert len({database.seed for database in ALL}) == len(ALL)


def test_only_entries_are_covered_in_part() -> None:
    """Their header alone, of which docs/FORMAT.md gives the length."""
    assert [database.name for database in ALL if database.sealed is not None] == ["entries"]
    assert ENTRIES.sealed == ENTRY_HEADER_BYTES


def test_each_is_described() -> None:
    """By its key and its value."""
    text = Path(schema.__file__).read_text(encoding="utf-8")
    for database in ALL:
        constant = database.name.upper()
        after = text.split(f"\n{constant} = ", 1)[1].split("\n", 1)[1]
        assert after.startswith('"""'), constant
        assert "->" in after.split('"""')[1], constant
