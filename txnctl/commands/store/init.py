"""`txnctl store init`: an empty store."""

from __future__ import annotations

from typing import NamedTuple

import click

from storage.errors import InvalidValue, StoreInvalid
from txnctl.cli.decorators import argument, example, names_store, output
from txnctl.cli.settings import check_typed_store
from txnctl.commands.if_not_exists import CREATED_NOW, create_unless_there, if_not_exists
from txnctl.commands.store.durability import durability_option
from txnctl.fields.store import CREATED
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class Created(NamedTuple):
    """The store at the path."""

    path: str
    format: int
    store_id: str
    created: bool


@argument(
    "path",
    required=False,
    type=click.Path(readable=False),
    help="The directory or URL to create. [default: that of --store]",
)
@durability_option
@if_not_exists
@names_store(effect="writes")
@output(fields_of(Created, {**CREATED, **CREATED_NOW}), name_field="path")
@example("txnctl store init bank.store")
@example("txnctl store init --store orders.store")
@example("txnctl store init bank.store --if-not-exists", setup="txnctl store init bank.store")
def init(context: Context, path: str | None, durability: str | None, may_exist: bool) -> None:
    """Create an empty store.

    A build directory is renamed to PATH at the end, so that the store is there whole or not at all. Missing parent
    directories are created. Anything at PATH but an empty directory is left alone (exit 4).

    A URL makes the store on a PostgreSQL server, as a schema NAME of the database, in one transaction there:

        txnctl store init 'postgresql://user@host/db?store=NAME'

    The password is found as by every client of PostgreSQL (PGPASSFILE, pg_service.conf), or is in a URL that
    TXNCTL_STORE has; on a command line it is refused. A server whose commits wait for no synchronous standby is refused
    too, unless --durability says local. docs/SCALE.md says which kind of store is for whom.
    """
    from storage import Store

    if path is not None:
        check_typed_store(path)
    typed = next(setting for setting in context.settings() if setting.name == "store")
    if path is not None and typed.source.startswith("option"):
        raise InvalidValue("the new store is named twice, by PATH and by --store", hint="Leave one out.")
    where = context.store_path if path is None else path
    created = create_unless_there(may_exist, lambda: Store.create(where, durability=durability))
    try:
        with context.open_store(where, read_only=True) as store:
            info = store.reports.store_info()
    except StoreInvalid as error:
        if created:
            error.message = f"created the store, but {error.message}"
        raise
    context.show(Created(info.path, info.format, info.store_id, created), table=_created)


def _created(row: Created) -> str:
    return f"Created store {row.path}." if row.created else f"Store {row.path} exists already."
