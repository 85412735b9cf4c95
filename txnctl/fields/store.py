"""Fields of a store: path, format, id; and the parts that take space."""

from __future__ import annotations

from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

CREATED = (
    Field("path", "text", "The store's directory."),
    Field("format", "integer", "The number of its format."),
    Field("storeId", "id", "Its identity, which a copy keeps.", heading="STORE ID"),
)

SPACE = (
    Field("database", "text", "A part of the store; docs/FORMAT.md says what each holds."),
    Field("entries", "integer", "Its records.", heading="RECORDS"),
    Field("bytes", "size", "The pages that it takes.", heading="SIZE"),
    Field("depth", "integer", "Levels of its tree."),
)
