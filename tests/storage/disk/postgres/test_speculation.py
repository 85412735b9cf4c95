"""A batch made without the gate starts from the last commit as the process has stored it."""

from __future__ import annotations

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.speculation import Speculation


def test_the_known_commit_is_the_stored_one(store: Store, environment: PostgresEnvironment) -> None:
    """Number and superblock, which a view reads from the server."""
    store.create_topic("t")
    writer = environment.writer
    known = Speculation(environment._batches, writer.kept.commit[1], writer._superblock)
    with store.connection.view() as view:
        assert known.number == view.commit
        assert known.superblock().encode() == view.superblock.encode()
    snapshot = known.snapshot(KeptReads(known.number), known.number + 1)
    assert snapshot.id() == known.number + 1
