"""The engine of a store, by the form of its name: a directory, or the URL of a server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from storage.process.clock import Clock

if TYPE_CHECKING:
    from storage.disk.environment import Environment
    from storage.process.writer_gate import OnWait

_SCHEMES = ("postgresql://", "postgres://")


def is_url(name: str) -> bool:
    """Whether a store is named by the URL of a server."""
    return name.startswith(_SCHEMES)


def resolved(name: str) -> str:
    """The one name of a store: the real path of its directory, or its URL without a password.

    Raises:
        StoreNotFound, InvalidValue, StoreInvalid
    """
    if is_url(name):
        from storage.disk.postgres.url import StoreUrl

        return StoreUrl.parse(name).shown
    from storage.disk.lmdb import directory

    return directory.resolved(name, os.path.realpath)


def without_password(name: str) -> str:
    """The name of a store for command lines and options: a path unchanged, a URL in its normal form.

    Raises:
        InvalidValue: the URL has a password (detail `parameter`), or cannot be read.
    """
    if not is_url(name):
        return name
    from storage.disk.postgres.url import StoreUrl

    return StoreUrl.parse(name, with_password=False).shown


def opened(
    name: str, clock: Clock, *, read_only: bool, timeout_s: float, on_wait: OnWait | None
) -> Environment:
    """Open the environment of an existing store.

    Raises:
        StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreUnsafe, NotPermitted, StoreInUse
    """
    if is_url(name):
        from storage.disk.postgres.environment import PostgresEnvironment

        return PostgresEnvironment(name, clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait)
    from storage.disk.lmdb.environment import LmdbEnvironment

    return LmdbEnvironment(name, clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait)


def create(name: str, clock: Clock) -> None:
    """Create an empty store, atomically.

    Raises:
        AlreadyExists: the path exists, and is left unchanged.
        StoreUnsafe, NotPermitted, StoreFull
    """
    if is_url(name):
        from storage.disk.postgres.create import create as create_schema

        create_schema(name, clock)
        return
    from storage.disk.lmdb.create import create as create_directory

    create_directory(name, clock)
