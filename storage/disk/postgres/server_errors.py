"""Translate errors of a PostgreSQL server: the event, the store, and the next step for the user."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from storage.actions import Action, Hint, Keyword
from storage.errors import (
    AlreadyExists,
    CorruptStore,
    NotPermitted,
    ServerLost,
    ServerUnreachable,
    StoreFull,
    StoreInvalid,
    StoreNotFound,
    StoreUnsafe,
    TooManyFiles,
    WriterBusy,
)
from storage.system_errors import TOO_MANY

if TYPE_CHECKING:
    from storage.disk.environment import HolderProcess
    from storage.disk.postgres.refusal import Refusal

_SECRET: Final = re.compile(r"(password=)\S+|(://[^:/@\s]*:)[^@\s]*@")
_LOCKS: Final = Action("store.reports.list_locks")
_FULL: Final = "53100"
NO_RIGHTS: Final = "42501"
_LOCKS_HINT: Final = "Where it is short of locks, raise max_locks_per_transaction and restart the server."
_SCHEMA_EXISTS: Final = "42P06"
_NOT_UNIQUE: Final = "23505"
_SCHEMA_NAMES: Final = "pg_namespace_nspname_index"
"""The index that refuses the second of two schemas of one name which are made at once."""
_NO_MEMORY: Final = "53200"
_NO_DATABASE: Final = "3D000"
_NO_SUCH_LOGIN: Final = ("28000", "28P01")
_NOT_YET: Final = ("57P03",)
"""States of a server that starts up, or follows another: the next try may find it ready."""
_CORRUPT: Final = ("XX001", "XX002")


def plain(message: str) -> str:
    """A message of the server or of libpq on one line, without a password."""
    return " ".join(_SECRET.sub(r"\1\2…", message.removeprefix("consuming input failed: ")).split())


def lost(shown: str, why: str) -> ServerLost:
    """The error for a connection that was lost, or that an earlier call has lost."""
    return ServerLost(
        f"the connection to {shown} was lost: {plain(why)}",
        hint="Open the store again; unfinished transactions of this process end.",
    )


def canceled(shown: str, message: str) -> StoreInvalid:
    """The error for a step that an operator of the server has canceled."""
    return StoreInvalid(
        f"the server canceled a step in {shown}: {plain(message)}", hint="Nothing was stored. Try again."
    )


def busy(what: str, waited_s: float, holder: HolderProcess | None) -> WriterBusy:
    """The error for a lock that was not free in time.

    Args:
        what: is locked.
        holder: the session that holds the lock, if known.
    """
    name = "another process" if holder is None else holder.holder
    hint = Hint("Try again, raise {}, or look at `{}`.", Keyword("lock_timeout"), _LOCKS)
    way = None if holder is None or holder.is_this else holder.way_out
    if holder is not None and way is not None:
        does = "Continue the stopped process"
        if holder.state != "stopped":
            does = (
                f"If it does nothing, {'continue it' if way.call == 'resume_process' else 'end its session'}"
            )
        hint = Hint("{} with `{}`, or look at `{}`.", does, way, _LOCKS)
    return WriterBusy(f"{what} was not free within {waited_s:g} s: held by {name}", hint=hint, holder=name)


def behind_pooler(shown: str) -> StoreUnsafe:
    """The error for a connection whose server process is not the one that the connection was told of."""
    return StoreUnsafe(
        f"a pooler is between this process and the server of {shown}: locks of a session would be lost or shared",
        hint="Connect to the server itself: a process needs two connections.",
    )


def not_admitted(shown: str, refusals: Sequence[Refusal]) -> StoreInvalid | AlreadyExists:
    """The error for a server, or for several hosts, to which no connection is made.

    An answer of one host counts for more than the silence of others; the answer of a host that starts up, or of a
    standby, for less than that of another.
    """
    text = plain("; ".join(refusal.text for refusal in refusals))
    answers = [
        refusal
        for refusal in refusals
        if refusal.kind not in ("silent", "unsuitable") and refusal.state not in _NOT_YET
    ]
    if not answers:
        return _silent(shown, text)
    kind, state = answers[0].kind, answers[0].state
    if state == _NO_DATABASE:
        return StoreNotFound(
            f"there is no store at {shown}: {text}", hint="Create the database first (createdb)."
        )
    if state in _NO_SUCH_LOGIN or kind == "no-password" or not (state or kind == "unencrypted"):
        return NotPermitted(
            f"the server of {shown} does not admit this user: {text}",
            hint="Name a role of the server in the URL; put its password into a file that PGPASSFILE names.",
        )
    if kind == "unencrypted":
        return StoreUnsafe(
            f"no encrypted connection to {shown} as sslmode demands: {text}",
            hint="Give the server a certificate that sslrootcert vouches for, and name its host as there; see "
            "sslmode in PostgreSQL's manual.",
        )
    if state == NO_RIGHTS:
        return NotPermitted(
            f"this user may not connect to the database of {shown}: {text}",
            hint="Have its owner run GRANT CONNECT ON DATABASE ... TO this role.",
        )
    if state == _NO_MEMORY:
        return ServerUnreachable(
            f"the server of {shown} has no memory left for a session: {text}", hint=_LOCKS_HINT
        )
    return refused(shown, state, text)


def _silent(shown: str, text: str) -> StoreInvalid:
    if any(os.strerror(number) in text for number in TOO_MANY):
        return TooManyFiles(
            f"{shown} cannot be opened: too many files are open",
            hint="Close some files, or raise the limit on open files (ulimit -n).",
        )
    return unreachable(shown, text)


def unreachable(shown: str, message: str) -> ServerUnreachable:
    """The error for a server that does not answer, or does not take a session now."""
    text = plain(message)
    return ServerUnreachable(
        f"the server of {shown} cannot be reached: {text}",
        hint="Check the address, and that the server accepts connections (pg_isready).",
    )


def reads_only(shown: str, message: str) -> NotPermitted:
    """The error for a write of a role, or in a database, that is to read only."""
    return NotPermitted(
        f"default_transaction_read_only is on for this role at {shown}: {plain(message)}",
        hint="Connect as a role that may write, or run ALTER ROLE ... RESET default_transaction_read_only.",
    )


def refused(shown: str, state: str, message: str) -> StoreInvalid | AlreadyExists:
    """The error for a statement that the server refused, by SQLSTATE."""
    text = plain(message)
    if state == _SCHEMA_EXISTS or (state == _NOT_UNIQUE and _SCHEMA_NAMES in text):
        return AlreadyExists(f"{shown} exists already; nothing was changed", path=shown)
    if state == _NO_MEMORY:
        return StoreInvalid(
            f"the server of {shown} has no memory left for the step: {text}",
            hint=_LOCKS_HINT,
        )
    if state in (_FULL, "53000"):
        return StoreFull(
            f"the server has no room for the change in {shown}: {text}",
            hint="Free some space on the disk of the server. Acknowledged messages are safe.",
        )
    if state == "53300":
        return ServerUnreachable(
            f"the server of {shown} has no connection left for this role: {text}",
            hint="Close some, or raise max_connections, or the role's limit (ALTER ROLE ... CONNECTION LIMIT).",
        )
    if state in (NO_RIGHTS, "28000", "28P01"):
        return NotPermitted(
            f"this user may not use the store at {shown}: {text}",
            hint="Connect as the role that made the store, or have its owner grant the rights on its schema.",
        )
    if state in ("25006", "57P03"):
        return ServerUnreachable(
            f"the server of {shown} is a standby, or is starting up: {text}",
            hint="Name the primary, or all hosts of the cluster in the URL.",
        )
    if state in _CORRUPT:
        return CorruptStore(
            f"the server reports damage in {shown}: {text}",
            hint=Hint(
                "Run `{}`, then restore a backup.", Action("store.maintenance.verify_store", full=True)
            ),
        )
    return StoreInvalid(f"the server refused a step in {shown} ({state}): {text}", hint="Nothing was stored.")
