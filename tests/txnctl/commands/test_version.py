"""`txnctl version`: of txnctl and of what it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of
from typing import Any

from storage.disk.schema import FORMAT_NUMBER
from txnctl import __version__


def test_versions_are_those_installed(run: Any) -> None:
    """And the format of stores, which decides what can be opened."""
    row = run("version", "-o", "json").json
    assert (row["txnctl"], row["python"], row["storeFormat"]) == (
        __version__,
        platform.python_version(),
        FORMAT_NUMBER,
    )
    assert {name: row[name] for name in ("click", "lmdb", "msgpack", "tabulate")} == {
        name: version_of(name) for name in ("click", "lmdb", "msgpack", "tabulate")
    }


def test_the_name_is_the_version(run: Any) -> None:
    """For scripts."""
    assert run("version", "-o", "name").out == f"{__version__}\n"


def test_a_library_that_is_missing_is_null(run: Any, monkeypatch: Any) -> None:
    """The others are still told."""
    import importlib.metadata as metadata

    def missing(name: str) -> str:
        if name == "msgpack":
            raise metadata.PackageNotFoundError(name)
        return version_of(name)

    monkeypatch.setattr(metadata, "version", missing)
    row = run("version", "-o", "json").json
    assert (row["msgpack"], row["lmdb"]) == (None, version_of("lmdb"))
