"""Fields of a store: path, format, id; and the parts that take space."""

from __future__ import annotations

from typing import NamedTuple

from storage.actions import Action
from txnctl.output.field import Help, fields_of

CREATED = {
    "path": Help("The store's directory or URL."),
    "format": Help("The number of its format."),
    "store_id": Help("Its identity, which a copy keeps.", kind="id"),
}


class SpaceRow(NamedTuple):
    """A part of the store, or a topic or table with --topics, or with --freeable a change that frees space."""

    database: str
    entries: int
    bytes: int
    depth: int | None
    kind: str
    name: str
    size_bytes: int | None
    freed_bytes: int | None
    held_by: str | None
    action: Action
    content_bytes: int
    other_bytes: int
    is_exact: bool


SPACE = fields_of(
    SpaceRow,
    {
        "database": "A part of the store, or a table on a server; docs/FORMAT.md says what each holds.",
        "entries": Help("Its records; on a server as estimated there.", heading="RECORDS"),
        "bytes": Help("The pages that it takes.", heading="SIZE", kind="size"),
        "depth": "Levels of its tree; null on a server.",
        "kind": Help(
            "With --topics, --freeable: topic, table; backlog (of a topic), store (remains).", heading=""
        ),
        "name": Help("With --topics, --freeable: of the topic or table.", heading=""),
        "size_bytes": Help(
            "With --topics, --freeable: its size; of a table with --freeable by its share.",
            heading="",
            kind="size",
        ),
        "freed_bytes": Help(
            "With --freeable: what the command frees; with --topics: what a trim frees now.",
            heading="",
            kind="size",
        ),
        "held_by": Help("With --topics, --freeable: what holds the rest back from trimming.", heading=""),
        "action": Help("With --freeable: the command that frees it.", heading=""),
        "content_bytes": Help("With --topics: entries of a topic, rows of a table.", heading="", kind="size"),
        "other_bytes": Help(
            "With --topics: its other records, as cursors, sequence ids, versions.", heading="", kind="size"
        ),
        "is_exact": Help(
            "With --topics: whether all records were counted; else a topic has at least, a table about so many.",
            heading="",
        ),
    },
)
