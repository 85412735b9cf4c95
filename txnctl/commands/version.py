"""`txnctl version`: versions of txnctl, Python and the libraries."""

from __future__ import annotations

from typing import NamedTuple

from txnctl import __version__
from txnctl.cli.declaration import command
from txnctl.cli.decorators import effect, example, output
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class Versions(NamedTuple):
    """The versions; None where a library was installed without metadata."""

    txnctl: str
    store_format: int
    python: str
    click: str | None
    lmdb: str | None
    msgpack: str | None
    tabulate: str | None


FIELDS = fields_of(
    Versions,
    {
        "txnctl": "The version of txnctl.",
        "store_format": "The number of the store format that this release reads and writes.",
        "python": "The version of Python.",
        "click": "The version of click, which parses the command line.",
        "lmdb": "The version of the LMDB binding, which stores the records.",
        "msgpack": "The version of msgpack, which packs them.",
        "tabulate": "The version of tabulate, which lays out lists.",
    },
)


@command
@effect("reads")
@output(FIELDS, name_field="txnctl")
@example("txnctl version")
@example("txnctl version -o json")
def version(context: Context) -> None:
    """Print the versions of txnctl, Python and the libraries."""
    context.show(_versions())


def _versions() -> Versions:
    import platform

    from storage.disk.schema import FORMAT_NUMBER

    return Versions(
        txnctl=__version__,
        store_format=FORMAT_NUMBER,
        python=platform.python_version(),
        click=_version_of("click"),
        lmdb=_version_of("lmdb"),
        msgpack=_version_of("msgpack"),
        tabulate=_version_of("tabulate"),
    )


def _version_of(library: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version as installed_version

    try:
        return installed_version(library)
    except PackageNotFoundError:
        return None
