"""Fields of rows: the fields of a command's result, the same for tables, JSON and `-o help`.

A row is a dict from camelCase names to plain values (text, integers, booleans, None, lists, maps). The fields say how
a value is shown to people; programs get the row itself. Fields are only ever added.
"""

from __future__ import annotations

from txnctl.output import human
from txnctl.output.escape import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = {
    "text": "string",
    "id": "string",
    "position": "string",
    "time": "string (RFC 3339, UTC)",
    "integer": "integer",
    "size": "integer (bytes)",
    "duration": "integer (milliseconds)",
    "timeMs": "integer (milliseconds since 1970)",
    "number": "number",
    "boolean": "boolean",
    "list": "array",
    "map": "object",
}
"""Each kind of field, and the JSON type it has (or null, where the value is unknown)."""

NUMERIC = frozenset({"integer", "size", "duration", "timeMs", "number"})


class Field:
    """One field: name in JSON, kind, help text, and heading in a table.

    `heading=""` keeps a field out of tables that repeats a column in a form for programs.
    """

    __slots__ = ("heading", "help", "kind", "name")

    def __init__(self, name: str, kind: str, help: str, *, heading: str | None = None) -> None:
        assert kind in KINDS, kind
        self.name = name
        self.kind = kind
        self.help = help
        self.heading = heading_of(name) if heading is None else heading

    def cell(self, row: Mapping[str, object]) -> str:
        """The value of this field of `row`, for people."""
        return shown(row.get(self.name), self.kind)


def heading_of(name: str) -> str:
    """`maxReadPosition` as `MAX READ POSITION`."""
    return "".join([f" {char}" if char.isupper() else char.upper() for char in name])


def shown(value: object, kind: str) -> str:
    """A value of that kind for people, harmless on a terminal; unknown is `-`."""
    if value is None:
        return human.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _integer(value, kind)
    if isinstance(value, dict):
        return (
            ", ".join([f"{printable(str(key))}={shown(item, 'text')}" for key, item in value.items()]) or "-"
        )
    if isinstance(value, list):
        return ", ".join([shown(item, "text") for item in value]) or human.UNKNOWN
    return printable(str(value))


def _integer(value: int, kind: str) -> str:
    if kind == "size":
        return human.size(value)
    if kind == "duration":
        return human.duration(value)
    if kind in ("id", "timeMs"):
        return str(value)
    return human.count(value)


def undeclared(row: Mapping[str, object], fields: tuple[Field, ...]) -> set[str]:
    """The names in `row` that `-o help` would not show; a test holds that there are none."""
    return set(row) - {field.name for field in fields}
