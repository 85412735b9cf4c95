"""The directory of a store, for maintenance that works on files: compacting, copying, taking the store lock alone."""

from __future__ import annotations

import os

from storage.actions import Action, Hint
from storage.disk.lmdb import directory
from storage.disk.lmdb.environment import LmdbEnvironment
from storage.engine import Engine
from storage.errors import InvalidValue


def environment_of(engine: Engine, action: str, instead: str) -> LmdbEnvironment:
    """The environment of a store that is a directory.

    Args:
        action: the maintenance asked for, as the error names it.
        instead: what to do with a store on a server, as the template of a hint; it may name a copy to a directory.

    Raises:
        InvalidValue: the store is on a server.
    """
    environment = engine.connection.environment
    if not isinstance(environment, LmdbEnvironment):
        path = engine.connection.path
        raise InvalidValue(
            f"{path} is on a server, and cannot be {action}",
            hint=Hint(instead, Action("Store.copy", path, "copy.store")),
        )
    return environment


def make_job_directory(engine: Engine, name: str) -> str | None:
    """Make a directory for files of jobs within the store's own, if it is missing; return its path.

    None for a store on a server, which has no directory.

    Raises:
        NotPermitted, StoreFull, TooManyFiles, StoreInvalid
    """
    environment = engine.connection.environment
    if not isinstance(environment, LmdbEnvironment):
        return None
    path = os.path.join(environment.path, name)
    directory.make_subdirectory(path, environment.path)
    return path
