"""Stores of tests on a server in place of directories: the directory that a test names becomes a schema of its own.

With TXNCTL_TEST_SERVER, the URL of a database, the functions of `storage.disk.stores` are wrapped as soon as that
module is imported: in the process of the tests, and by `server_hook/sitecustomize.py` in each process that a test
starts. The name of a schema is made of the directory of the test and the directory of the store, so that all processes
find the same one, and the end of a test drops the schemas of that test alone. This module imports nothing of storage.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

SERVER = "TXNCTL_TEST_SERVER"
"""The variable with the URL of the database; tests use directories without the variable."""
BASE = "TXNCTL_TEST_BASE"
"""The variable with the directory in which each test has a directory of its own."""
_STORES = "storage.disk.stores"
_CLOCK = "storage.disk.postgres.server_clock"


def schema_prefix(directory: str) -> str:
    """The beginning of the names of all schemas whose directory is that of a test, or lies in that of a test."""
    base = os.path.realpath(os.environ.get(BASE, "/"))
    path = os.path.realpath(directory)
    inner = os.path.relpath(path, base)
    root = path if inner.startswith("..") else os.path.join(base, inner.split(os.sep, 1)[0])
    return f"t{_digest(root, 12)}_"


def is_url(name: str) -> bool:
    """Whether a test names a store by a URL."""
    return name.startswith(("postgresql://", "postgres://"))


def schema_of(url: str) -> str:
    """The schema of a store that `url_of` names."""
    return url.rpartition("&store=")[2]


def url_of(name: str) -> str:
    """The URL of the store that a test names by a directory; a URL stays, and so does a directory with a store.

    Tests on a server make no store in a directory, unless they ask for a backup.
    """
    path = os.fspath(name)
    if is_url(path) or os.path.exists(os.path.join(path, "data.mdb")):
        return path
    return f"{os.environ[SERVER]}&store={schema_prefix(path)}{_digest(os.path.realpath(path), 16)}"


def _digest(path: str, length: int) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:length]


def install() -> None:
    """Wrap the modules of storage in this process, those that are imported already and those to come."""
    sys.meta_path.insert(0, _Finder())
    for name, wrap in _WRAPPED.items():
        if name in sys.modules:
            wrap(sys.modules[name])


def _wrap_stores(stores: ModuleType) -> None:
    """Let the functions that take the name of a store take the URL of its schema instead."""
    resolved, opened, create, building = stores.resolved, stores.opened, stores.create, stores.building

    def chosen(url: str, durability: Any) -> Any:
        """Without a word, a store on the server of the tests is a local one."""
        if durability is None and url.startswith(os.environ[SERVER]):
            from storage.values.durability import Durability

            return Durability.LOCAL
        return durability

    def create_schema(name: str, clock: Any, durability: Any = None) -> None:
        url = url_of(name)
        create(url, clock, chosen(url, durability))

    def build(destination: str, clock: Any, durability: Any = None) -> Any:
        return building(destination, clock, chosen(destination, durability))

    wrapped: Any = stores
    wrapped.building = build
    wrapped.resolved = lambda name: resolved(url_of(name))
    wrapped.opened = lambda name, clock, **how: opened(url_of(name), clock, **how)
    wrapped.create = create_schema


def _wrap_clock(server_clock: ModuleType) -> None:
    """Let a clock that a test moves be the server's clock too."""
    wall_ns = server_clock.ServerClock.wall_ns

    def moved_ns(self: Any) -> Any:
        from storage.process.clock import ManualClock

        machine = self._machine
        return machine.wall_ns() if isinstance(machine, ManualClock) else wall_ns(self)

    wrapped: Any = server_clock
    wrapped.ServerClock.wall_ns = moved_ns


_WRAPPED = {_STORES: _wrap_stores, _CLOCK: _wrap_clock}


class _Finder(MetaPathFinder):
    """Finds the modules to wrap as Python does, and gives each a loader that wraps it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _WRAPPED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _WrappingLoader(spec.loader, name)
        return spec


class _WrappingLoader(Loader):
    """Loads a module by its own loader, and wraps it."""

    def __init__(self, loader: Loader, name: str) -> None:
        self._loader = loader
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _WRAPPED[self._name](module)
