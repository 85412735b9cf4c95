"""The size of a store on a server, and the processes that use the store."""

from __future__ import annotations

import subprocess

from storage.disk.postgres.environment import PostgresEnvironment


def test_space_is_that_of_the_tables(environment: PostgresEnvironment) -> None:
    """The disk of the server is not known."""
    space = environment.space()
    assert space.data_bytes > 0
    assert (space.map_bytes, space.disk_free_bytes, space.disk_bytes) == (None, None, None)


def test_processes_with_the_store_open_are_named_but_this_one(
    environment: PostgresEnvironment, bystander: subprocess.Popen[str]
) -> None:
    """A process has two sessions, and is one holder."""
    assert environment.open_processes() == []
    assert environment.gate_holder() is None
