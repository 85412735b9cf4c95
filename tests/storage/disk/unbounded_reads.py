"""A read cache without bounds: every read is kept. The verdicts of the real one are compared with its verdicts."""

from __future__ import annotations

from storage.disk.lmdb.read_cache import MappedReadCache


class Key:
    """A key to be written."""

    def __init__(self, table_id: int, key: bytes) -> None:
        self.table_id = table_id
        self.key = key


class UnboundedReads:
    """All reads; each is recorded in a real cache as well."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, bytes], int] = {}
        self._ranges: list[tuple[int, int, bytes, bytes]] = []

    def record_key(self, cache: MappedReadCache, table_id: int, key: bytes, timestamp: int) -> None:
        cache.record_key(table_id, key, timestamp, 0)
        self._keys[table_id, key] = max(timestamp, self._keys.get((table_id, key), 0))

    def record_range(
        self, cache: MappedReadCache, table_id: int, start: bytes, end: bytes, timestamp: int
    ) -> None:
        cache.record_range(table_id, start, end, timestamp, 0)
        self._ranges.append((timestamp, table_id, start, end))

    def forbids(self, place: Key, timestamp: int) -> bool:
        """Whether a later transaction has read the key, or a range with the key."""
        if self._keys.get((place.table_id, place.key), 0) > timestamp:
            return True
        return any(
            time > timestamp and table == place.table_id and start <= place.key < end
            for time, table, start, end in self._ranges
        )
