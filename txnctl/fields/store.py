"""Fields of a store: path, format, id; and the parts that take space."""

from __future__ import annotations

from txnctl.output.field import Help, fields_of

CREATED = {
    "path": Help("The store's directory."),
    "format": Help("The number of its format."),
    "store_id": Help("Its identity, which a copy keeps.", kind="id"),
}

SPACE = fields_of(
    "storage.reports.store_info:DatabaseRow",
    {
        "database": "A part of the store; docs/FORMAT.md says what each holds.",
        "entries": Help("Its records.", heading="RECORDS"),
        "bytes": Help("The pages that it takes.", heading="SIZE", kind="size"),
        "depth": "Levels of its tree.",
    },
)
