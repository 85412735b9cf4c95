"""Run: `storage/verify/run.py`."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.view import WriteBatch
from storage.txn.reaper import EVERY


class TestChecksums:
    """LMDB notices no flipped bit."""

    @pytest.mark.parametrize("place", [0, 3, 4, 10, -1])
    def test_a_flipped_bit_in_any_record_is_found(self, written: Store, place: int) -> None:
        """Of every database, checksum and payload: with the name of the database, and no traceback."""

        def flip(batch: WriteBatch, name: str, key: bytes) -> None:
            raw, handle = batch._raw, batch._databases[name]
            data = bytearray(raw.get(key, db=handle))
            data[place if abs(place) < len(data) else 0] ^= 0x10
            raw.put(key, bytes(data), db=handle)
            batch.superblock.changes += 1

        with written.connection.view() as view:
            records = {}
            for name, handle in view._databases.items():
                with view._raw.cursor(db=handle) as raw_cursor:
                    if raw_cursor.first() and (name != "heads" or raw_cursor.next()):
                        records[name] = raw_cursor.key()
        assert len(records) > 12
        for name, key in records.items():
            written.connection.write(lambda batch, name=name, key=key: flip(batch, name, key), naming=EVERY)
            problems = written.maintenance.verify_store(full=True)
            assert problems, name
            written.connection.write(lambda batch, name=name, key=key: flip(batch, name, key), naming=EVERY)
        assert written.maintenance.verify_store(full=True) == []
