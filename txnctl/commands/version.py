"""`txnctl version`: versions of txnctl, Python and the libraries."""

from __future__ import annotations

from txnctl import __version__
from txnctl.cli.declaration import command
from txnctl.cli.decorators import effect, example, output
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

PACKAGES = ("click", "lmdb", "msgpack", "tabulate")

FIELDS = (
    Field("txnctl", "text", "The version of txnctl."),
    Field("storeFormat", "integer", "The number of the store format that this release reads and writes."),
    Field("python", "text", "The version of Python."),
    Field("click", "text", "The version of click, which parses the command line."),
    Field("lmdb", "text", "The version of the LMDB binding, which stores the records."),
    Field("msgpack", "text", "The version of msgpack, which packs them."),
    Field("tabulate", "text", "The version of tabulate, which lays out lists."),
)


@command
@effect("reads")
@output(FIELDS, name_field="txnctl")
@example("txnctl version")
@example("txnctl version -o json")
def version(context: Context) -> None:
    """Print the versions of txnctl, Python and the libraries."""
    context.show(_versions())


def _versions() -> Row:
    import platform
    from importlib.metadata import PackageNotFoundError, version as version_of

    from storage.disk.schema import FORMAT_NUMBER

    row: Row = {
        "txnctl": __version__,
        "storeFormat": FORMAT_NUMBER,
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            row[package] = version_of(package)
        except PackageNotFoundError:
            row[package] = None
    return row
