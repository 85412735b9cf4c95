"""Remove the remains of deleted topics, subscriptions and tables, in steps of bounded size."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.subscription import subscription_purge
from storage.table import catalogue as tables
from storage.topic import catalogue as topics


def purge_deleted(connection: Connection) -> int:
    """Run steps until nothing is left, each a store transaction; their number. After a kill the next run goes on."""
    steps = 0
    share = ReserveShare.WHOLE
    while connection.write(topics.purge_step, share=share) or connection.write(
        tables.purge_step, share=share
    ):
        steps += 1
    return steps + subscription_purge.finish(connection)
