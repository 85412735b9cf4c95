"""The engine of a store, by the form of its name: a directory, or the URL of a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from storage.errors import InvalidValue, ProgramMissing
from storage.process.clock import Clock
from storage.values.durability import Durability
from storage.values.store_name import is_url

if TYPE_CHECKING:
    from storage.disk.environment import Environment
    from storage.disk.sealed_records import StoreBuild
    from storage.process.writer_gate import OnWait

__all__ = [
    "building",
    "check_local",
    "check_typed",
    "create",
    "is_url",
    "opened",
    "resolved",
    "without_password",
]


def check_typed(name: str) -> None:
    """Refuse the URL of a store with a password on a command line, which every user of the machine can read.

    Raises:
        InvalidValue
    """
    if is_url(name):
        from storage.disk.postgres.url import StoreUrl

        StoreUrl.parse(name, with_password=False)


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
        ProgramMissing, ServerUnreachable: on a server.
    """
    if is_url(name):
        with _driver():
            from storage.disk.postgres.environment import PostgresEnvironment
        return PostgresEnvironment(name, clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait)
    from storage.disk.lmdb.environment import LmdbEnvironment

    return LmdbEnvironment(name, clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait)


def create(name: str, clock: Clock, durability: Durability | None = None) -> None:
    """Create an empty store, atomically.

    Args:
        durability: None is `local` for a directory, and `replicated` for a store on a server.

    Raises:
        AlreadyExists: the path exists, and is left unchanged.
        InvalidValue, StoreUnsafe, NotPermitted, StoreFull, ServerUnreachable
    """
    if is_url(name):
        with _driver():
            from storage.disk.postgres.create import create as create_schema
        create_schema(name, clock, is_replicated=_is_replicated(durability))
        return
    check_local(name, durability)
    from storage.disk.lmdb.create import create as create_directory

    create_directory(name, clock)


def building(
    destination: str, clock: Clock, durability: Durability | None = None
) -> AbstractContextManager[StoreBuild]:
    """Begin the build of a copied store, or go on with the one that an interrupt has left; see `sealed_records.py`.

    Args:
        durability: as `create` has it.

    Raises:
        AlreadyExists: the destination exists, and is left unchanged.
        StoreInUse: another process is building there.
        InvalidValue, StoreInvalid, StoreUnsafe, NotPermitted, StoreFull
    """
    if is_url(destination):
        with _driver():
            from storage.disk.postgres.store_build import building as building_schema
        return building_schema(destination, clock, is_replicated=_is_replicated(durability))
    check_local(destination, durability)
    from storage.disk.lmdb.store_build import building as building_directory

    return building_directory(destination, clock)


@contextmanager
def _driver() -> Iterator[None]:
    """Within the block the driver of PostgreSQL is imported.

    Raises:
        ProgramMissing: the driver, or the library of PostgreSQL that it needs, is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ProgramMissing(
            f"a store on a server needs psycopg, which cannot be imported: {str(error).partition(chr(10))[0]}",
            hint="Install it for this Python: pip install 'txnctl[postgres]'.",
            program="psycopg",
        ) from error


def _is_replicated(durability: Durability | None) -> bool | None:
    return None if durability is None else durability is Durability.REPLICATED


def check_local(name: str, durability: Durability | None) -> None:
    """Raises:
    InvalidValue: a directory is to be replicated.
    """
    if durability is Durability.REPLICATED:
        raise InvalidValue(
            f"{name} is a directory, which one machine keeps",
            hint="A replicated store is on a server: postgresql://user@host/database?store=bank.",
        )
