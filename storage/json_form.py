"""The JSON form of rows: names in camelCase, values as JSON knows them, in the order of a row's fields.

A row is a named tuple. The form of a field follows from its name and value:

    txn_id: TxnID          "txnId": "0:42"; positions, message ids and process identities are text as well
    begin_at_ms: int       "beginAt": "2026-11-22T20:55:00.000Z", "beginMs": 1795380900000
    version_ns: int        "version": "1795380900000000000", text because such a number is no exact double
    key: bytes             "key": "B1", or "keyBase64": "/w==" where the bytes are no UTF-8
    key_list: list[bytes]  "keyList": [{"key": "B1"}]
    action: Action         "command": the call, or the text that a front end has for the action

    counts: Flat[Counts]   the fields of `Counts` in place of the field
    start_at_ms: TimeText  "start": "2026-11-22T20:55:00.000Z"

Rows are named tuples of `storage.values.named_tuple` rather than dataclasses because a short command pays for making
their classes.

The mapping stands in the engine because the audit trail stores the effects of a change in this form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated, Any, TypeVar, overload

from storage.actions import Hint
from storage.process.identity import ProcessIdentity
from storage.values.timestamps import rfc3339

JsonObject = dict[str, Any]
"""A JSON object: its values are null, true, false, numbers, text, lists, objects."""

T = TypeVar("T")
Flat = Annotated[T, "flat"]
TimeText = Annotated[int, "text"]

_Text = Callable[[object], str]
_Emit = Callable[[JsonObject, Any, _Text], None]

_plans: dict[type, list[_Emit]] = {}
_PLAIN = (bool, int, float, str, bytes)


@overload
def to_json(value: tuple[Any, ...], text: _Text = ...) -> JsonObject: ...
@overload
def to_json(value: list[Any], text: _Text = ...) -> list[JsonObject]: ...
@overload
def to_json(value: Iterator[Any], text: _Text = ...) -> Iterator[JsonObject]: ...
@overload
def to_json(value: object, text: _Text = ...) -> Any: ...


def to_json(value: Any, text: _Text = str) -> Any:
    """The JSON form of a row, of rows in a list or dict, or of a single value; an iterator is converted lazily.

    Args:
        text: makes the text of ids, positions, processes, actions and hints.
    """
    kind = type(value)
    if kind is Hint:
        return text(value)
    if value is None or isinstance(value, _PLAIN):
        return value
    if kind is list or kind is tuple:
        return [to_json(item, text) for item in value]
    if kind is dict:
        return {key: to_json(item, text) for key, item in value.items()}
    if kind is not ProcessIdentity and hasattr(kind, "_fields"):
        return _to_object(value, text)
    if isinstance(value, Enum):
        return value.value
    return (to_json(item, text) for item in value) if isinstance(value, Iterator) else text(value)


def camel_case(name: str) -> str:
    """`max_read_position` as `maxReadPosition`."""
    first, *words = name.split("_")
    return first + "".join([word.capitalize() for word in words])


def bytes_field(name: str, value: bytes | None) -> JsonObject:
    """The member `name` with UTF-8 as text, else `nameBase64`; null where there are no bytes."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {f"{name}Base64": b2a_base64(value, newline=False).decode()}


def _to_object(row: Any, text: _Text) -> JsonObject:
    kind = type(row)
    plan = _plans.get(kind)
    if plan is None:
        plan = _plans[kind] = [_emitter(kind, name) for name in kind._fields]
    shown: JsonObject = {}
    for emit, value in zip(plan, row, strict=True):
        emit(shown, value, text)
    return shown


def _emitter(kind: Any, name: str) -> _Emit:
    """The function that writes one field of a row into an object."""
    annotation = kind.__annotations__[name]
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__forward_arg__", "")
    if annotation.startswith("Flat["):
        return _write_flat
    if annotation.startswith("TimeText"):
        return _time_writer(camel_case(name.removesuffix("_at_ms")), None)
    if name.endswith("_at_ms"):
        stem = camel_case(name.removesuffix("_at_ms"))
        return _time_writer(f"{stem}At", f"{stem}Ms")
    if name.endswith("_ns"):
        return _text_writer(camel_case(name.removesuffix("_ns")))
    if annotation.startswith("bytes"):
        return _bytes_writer(camel_case(name))
    if annotation.startswith("list[bytes"):
        return _list_of_bytes_writer(camel_case(name))
    if annotation.startswith("Action"):
        return _value_writer("command")
    return _value_writer(camel_case(name))


def _write_flat(shown: JsonObject, row: Any, text: _Text) -> None:
    if row is not None:
        shown.update(_to_object(row, text))


def _time_writer(text_name: str, number_name: str | None) -> _Emit:
    def write(shown: JsonObject, value: Any, _: _Text) -> None:
        shown[text_name] = rfc3339(value)
        if number_name is not None:
            shown[number_name] = value

    return write


def _text_writer(name: str) -> _Emit:
    def write(shown: JsonObject, value: Any, _: _Text) -> None:
        shown[name] = None if value is None else str(value)

    return write


def _bytes_writer(name: str) -> _Emit:
    def write(shown: JsonObject, value: Any, _: _Text) -> None:
        shown.update(bytes_field(name, value))

    return write


def _list_of_bytes_writer(name: str) -> _Emit:
    of_item = name.removesuffix("List")

    def write(shown: JsonObject, value: Any, _: _Text) -> None:
        shown[name] = [bytes_field(of_item, item) for item in value]

    return write


def _value_writer(name: str) -> _Emit:
    def write(shown: JsonObject, value: Any, text: _Text) -> None:
        shown[name] = to_json(value, text)

    return write
