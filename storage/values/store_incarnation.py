"""A store, told from every other one."""

from __future__ import annotations

from storage.values.named_tuple import NamedTuple


class StoreIncarnation(NamedTuple):
    """Path and id of a store, and the number that restoring a backup raises."""

    path: str
    store_id: bytes
    number: int
