"""Fields of a store: path, format, id; and the parts that take space."""

from __future__ import annotations

from typing import NamedTuple

from storage.actions import Action
from txnctl.output.field import Help, fields_of

CREATED = {
    "path": Help("The store's directory."),
    "format": Help("The number of its format."),
    "store_id": Help("Its identity, which a copy keeps.", kind="id"),
}


class SpaceRow(NamedTuple):
    """A part of the store, or, with --freeable, a change that frees space."""

    database: str
    entries: int
    bytes: int
    depth: int
    kind: str
    name: str
    size_bytes: int | None
    freed_bytes: int | None
    held_by: str | None
    action: Action


SPACE = fields_of(
    SpaceRow,
    {
        "database": "A part of the store; docs/FORMAT.md says what each holds.",
        "entries": Help("Its records.", heading="RECORDS"),
        "bytes": Help("The pages that it takes.", heading="SIZE", kind="size"),
        "depth": "Levels of its tree.",
        "kind": Help("With --freeable: topic, backlog (of a topic), table, or store (remains).", heading=""),
        "name": Help("With --freeable: of the topic or table.", heading=""),
        "size_bytes": Help("With --freeable: its size; of a table by its share.", heading="", kind="size"),
        "freed_bytes": Help("With --freeable: the part that the command frees.", heading="", kind="size"),
        "held_by": Help("With --freeable: what holds the rest back from trimming.", heading=""),
        "action": Help("With --freeable: the command that frees it.", heading=""),
    },
)
