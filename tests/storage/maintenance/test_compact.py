"""Compacting: the file shrinks, nothing else changes, and handles of the process go on."""

from __future__ import annotations

import os
from pathlib import Path

from storage import EARLIEST, Store


def test_the_file_shrinks_and_the_messages_stay(store: Store, path: str) -> None:
    """A topic that was deleted leaves pages that nobody uses."""
    store.create_producer("t").send(b"kept")
    store.create_topic("big")
    with store.create_producer("big") as producer:
        producer.send_batch([os.urandom(10_000) for _ in range(200)])
    store.admin.topics.delete_topic("big")
    before = os.stat(Path(path, "data.mdb")).st_size
    result = store.maintenance.compact_store()
    after = os.stat(Path(path, "data.mdb")).st_size
    assert after < before
    assert (result.bytes_before, result.bytes_after) == (before, after)
    with store.reader("t", start=EARLIEST) as reader:
        assert [message.value for message in reader] == [b"kept"]


def test_handles_go_on_and_the_trail_names_it(store: Store, path: str) -> None:
    """Those that only read among them."""
    with Store.open(path, read_only=True) as other:
        store.maintenance.compact_store(reason="the disk is nearly full")
        store.create_topic("later")
        assert sorted(other.topics()) == ["later", "t"]
    record = store.reports.list_audit_records(1)[0]
    assert (record.action, record.reason) == ("store compact", "the disk is nearly full")
