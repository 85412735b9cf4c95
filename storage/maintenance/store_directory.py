"""The directory of a store, for maintenance that works on files: compacting, copying, taking the store lock alone."""

from __future__ import annotations

from storage.disk.lmdb.environment import LmdbEnvironment
from storage.engine import Engine
from storage.errors import InvalidValue


def environment_of(engine: Engine, action: str, instead: str) -> LmdbEnvironment:
    """The environment of a store that is a directory.

    Args:
        action: the maintenance asked for, as the error names it.
        instead: what to do with a store on a server, as the hint.

    Raises:
        InvalidValue: the store is on a server.
    """
    environment = engine.connection.environment
    if not isinstance(environment, LmdbEnvironment):
        raise InvalidValue(f"{engine.connection.path} is on a server, and cannot be {action}", hint=instead)
    return environment
