"""Fields of rows: the names, kinds and help texts of a command's result, for JSON, tables and `-o help`.

A row is a typed record of the engine or of a command. `fields_of` derives the fields from the class of the row on use:
names and kinds from names and annotations (the mapping of `storage.json_form`), the help text from a description.
Fields are only ever added.
"""

from __future__ import annotations

from typing import NamedTuple

from storage.json_form import camel_case
from storage.values.timestamps import rfc3339
from txnctl.output import human
from txnctl.output.escape import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

KINDS = {
    "text": "string",
    "id": "string",
    "position": "string",
    "time": "string (RFC 3339, UTC)",
    "integer": "integer",
    "size": "integer (bytes)",
    "duration": "integer (milliseconds)",
    "timeMs": "integer (milliseconds since 1970)",
    "keptTime": "integer (milliseconds)",
    "keptSize": "integer (bytes)",
    "number": "number",
    "boolean": "boolean",
    "list": "array",
    "map": "object",
}
"""Each kind of field, and the JSON type it has (or null, where the value is unknown)."""

NUMERIC = frozenset({"integer", "size", "duration", "timeMs", "keptTime", "keptSize", "number"})

_KIND_OF_TYPE = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "text",
    "ProcessIdentity": "text",
    "Position": "position",
    "MessageId": "position",
    "TxnID": "id",
    "list": "list",
    "tuple": "list",
    "dict": "map",
}
"""The kind of a field by the first name of its annotation; the class of a row makes a map."""

_SAME_AS_INTEGER = "The same as an integer."


class Field:
    """One field: name in JSON, kind, help text, and heading in a table.

    `heading=""` keeps a field out of tables that repeats a column in a form for programs. On a narrow terminal columns
    with a rank go, the highest first.
    """

    __slots__ = ("heading", "help", "kind", "name", "rank", "short")

    def __init__(self, name: str, kind: str, help: str, *, heading: str | None = None, rank: int = 0) -> None:
        assert kind in KINDS, kind
        self.name = name
        self.kind = kind
        self.help = help
        self.heading = heading_of(name) if heading is None else heading
        self.rank = rank
        self.short = None

    def cell(self, row: Mapping[str, object]) -> str:
        """The value of this field in the JSON form of a row, for people."""
        return shown(row.get(self.name), self.kind)


class Help(NamedTuple):
    """The description of a field: the help text, and where the name does not say them, heading and kind.

    `ms_heading` is the heading of the integer beside a time; `""` keeps the integer out of tables. `base64` describes
    the form of bytes that are not UTF-8. Columns with a `rank` leave a narrow table, the highest first.
    """

    text: str
    heading: str | None = None
    kind: str | None = None
    ms_heading: str | None = ""
    base64: str = ""
    rank: int = 0


class Fields:
    """The fields of a result, derived on use: few runs of a command need them, and rows are classes of the engine."""

    __slots__ = ("_derive",)

    def __init__(self, derive: Callable[[], Iterable[Field]]) -> None:
        self._derive = derive

    def __iter__(self) -> Iterator[Field]:
        return iter(self._derive())


def fields_of(row: type | str, described: Mapping[str, Help | str], *, part: str = "") -> Fields:
    """The fields of a class of rows, in the order of the descriptions.

    A reference names a class without importing the module: `package.module:Row`, or `package.module:Generic[Row]` with
    the names of that module.

    Args:
        row: the class or a reference.
        described: the help of every field by its Python name; fields of a flat part stand beside the row's own.
        part: a reference to the class of the flat part, where the row's module imports the class for type checkers
            alone.
    """

    def derive() -> Iterator[Field]:
        annotations = dict(_annotations(_referenced(row) if isinstance(row, str) else row, part))
        assert annotations.keys() == described.keys(), sorted(annotations.keys() ^ described.keys())
        for name, text in described.items():
            yield from _fields(name, annotations[name], text if isinstance(text, Help) else Help(text))

    return Fields(derive)


def _referenced(reference: str) -> Any:
    """The class of rows behind a reference, with the module loaded."""
    module, _, expression = reference.partition(":")
    *generics, name = expression.rstrip("]").split("[")
    namespace = vars(__import__(module, fromlist=[name]))
    row = namespace[name]
    for generic in reversed(generics):
        row = namespace[generic][row]
    return row


def _annotations(row: Any, part: str = "") -> Iterator[tuple[str, str]]:
    """Name and annotation of each field of a row, flat parts in place; the row may be `Changed[Effects]`."""
    generic = getattr(row, "__origin__", row)
    for name in generic._fields:
        annotation = generic.__annotations__[name]
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        if text.startswith("Flat["):
            yield from _annotations(_part_of(row, text.removeprefix("Flat[").removesuffix("]"), part))
        else:
            yield name, text


def _part_of(row: Any, annotation: str, part: str) -> Any:
    """The class of a flat part: the parameter of a generic row, the class of the reference, or in the row's module."""
    name = annotation.removesuffix(" | None")
    if name == "T":
        return row.__args__[0]
    return _referenced(part if part.endswith(f":{name}") else f"{row.__module__}:{name}")


def _fields(name: str, annotation: str, described: Help) -> Iterator[Field]:
    text, heading, kind, ms_heading, base64, rank = described
    if name.endswith("_at_ms"):
        stem = camel_case(name.removesuffix("_at_ms"))
        if annotation.startswith("TimeText"):
            yield Field(stem, kind or "time", text, heading=heading, rank=rank)
        else:
            yield Field(f"{stem}At", "time", text, heading=heading, rank=rank)
            yield Field(f"{stem}Ms", "timeMs", _SAME_AS_INTEGER, heading=ms_heading)
    elif annotation.startswith("Action"):
        yield Field("command", "text", text, heading=heading)
    elif name.endswith("_ns"):
        yield Field(camel_case(name.removesuffix("_ns")), kind or "id", text, heading=heading, rank=rank)
    elif annotation.startswith("bytes"):
        yield Field(camel_case(name), "text", text, heading=heading)
        yield Field(f"{camel_case(name)}Base64", "text", base64, heading="")
    else:
        yield Field(camel_case(name), kind or _kind(name, annotation), text, heading=heading, rank=rank)


def _kind(name: str, annotation: str) -> str:
    """The kind that name and annotation of a field imply."""
    if name.endswith("_ms"):
        return "duration"
    head = annotation.removesuffix(" | None").partition("[")[0]
    return _KIND_OF_TYPE.get(head, "map")


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
    if kind in ("keptTime", "keptSize") and not value:
        return human.NOTHING_KEPT
    if kind in ("size", "keptSize"):
        return human.size(value)
    if kind in ("duration", "keptTime"):
        return human.duration(value)
    if kind in ("id", "timeMs"):
        return str(value)
    if kind == "time":
        return str(rfc3339(value))
    return human.count(value)


def undeclared(row: Mapping[str, object], fields: Iterable[Field]) -> set[str]:
    """The names in `row` that `-o help` would not show; a test holds that there are none."""
    return set(row) - {field.name for field in fields}
