"""The JSON Schema of a command's result, derived from its fields and the classes of its rows.

The dialect is 2020-12. A result is a row or a list of rows; `-o ndjson` prints a row a line. Fields are only ever
added, so that a schema allows others; null stands for an unknown value.
"""

from __future__ import annotations

import ast
from enum import Enum
from functools import cache
from typing import Any, Final

from storage.process.identity import ProcessIdentity
from txnctl.output.field import NUMERIC, Field, Help, annotations_of, fields_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TYPES: Final = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "bytes": "string"}
_SUFFIX: Final = "Base64"


def schema_of(title: str, fields: Iterable[Field], *, partial: bool = False) -> Schema:
    """The schema of a result with these fields.

    Args:
        title: the command.
        partial: a row has some of the fields only.
    """
    definitions: dict[str, Schema] = {}
    row = _object(fields, definitions)
    if partial:
        del row["required"]
    return {
        "$schema": DIALECT,
        "title": title,
        "anyOf": [
            {"$ref": "#/$defs/row"},
            {"type": "array", "items": {"$ref": "#/$defs/row"}},
            {"type": "null"},
        ],
        "$defs": {"row": row, **definitions},
    }


def _object(fields: Iterable[Field], definitions: dict[str, Schema]) -> Schema:
    properties: Schema = {}
    required: list[str] = []
    for field in fields:
        properties[field.name] = _of_field(field, definitions)
        if not _is_bytes(field):
            required.append(field.name)
    return {"type": "object", "properties": properties, "required": required}


def _is_bytes(field: Field) -> bool:
    """Whether a field stands under one of two names: `key` or `keyBase64`."""
    return field.origin is not None and field.origin[0].startswith("bytes")


def _of_field(field: Field, definitions: dict[str, Schema]) -> Schema:
    described: Schema = {"description": field.help} if field.help else {}
    if field.kind == "time":
        return {"type": ["string", "null"], "format": "date-time", **described}
    if field.kind == "number":
        return {"type": ["number", "null"], **described}
    if field.kind in NUMERIC:
        return {"type": ["integer", "null"], **described}
    if field.kind == "boolean":
        return {"type": ["boolean", "null"], **described}
    if field.kind == "id" and field.origin is not None and field.origin[0].startswith("int"):
        # A number that is no count: of a session, or a time in nanoseconds, which is text.
        return {"type": ["integer", "string", "null"], **described}
    if field.kind not in ("list", "map"):
        return {"type": ["string", "null"], **described}
    if field.origin is None:
        return {"type": ["array" if field.kind == "list" else "object", "null"], **described}
    annotation, row = field.origin
    if annotation.startswith("list[bytes"):
        stem = field.name.removesuffix("List")
        pair = {stem: {"type": "string"}, f"{stem}{_SUFFIX}": {"type": "string"}}
        return {"type": "array", "items": {"type": "object", "properties": pair}, **described}
    schema = _of_annotation(ast.parse(annotation, mode="eval").body, row, definitions)
    return {"anyOf": [schema, {"type": "null"}], **described} if schema else described


def _of_annotation(node: ast.expr, row: Any, definitions: dict[str, Schema]) -> Schema:
    """The schema of the values of an annotation; empty, which allows all, where the classes do not tell."""
    if isinstance(node, ast.BinOp):
        return {"anyOf": [_of_annotation(part, row, definitions) for part in (node.left, node.right)]}
    if isinstance(node, ast.Constant) and node.value is None:
        return {"type": "null"}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if node.value.id in ("list", "tuple", "Sequence"):
            return {"type": "array", "items": _of_annotation(parts[0], row, definitions)}
        if node.value.id in ("dict", "Mapping"):
            return {"type": "object", "additionalProperties": _of_annotation(parts[-1], row, definitions)}
    if isinstance(node, ast.Name):
        if node.id in _TYPES:
            return {"type": _TYPES[node.id]}
        return _of_class(_found(node.id, row), definitions)
    return {}


def _of_class(class_: Any, definitions: dict[str, Schema]) -> Schema:
    if class_ is None or not isinstance(class_, type):
        return {}
    if issubclass(class_, Enum):
        return {"enum": [member.value for member in class_]}
    if class_ is ProcessIdentity or not hasattr(class_, "_fields"):
        return {"type": "string"}
    name = class_.__name__
    if name not in definitions:
        definitions[name] = {}
        fields = [
            field
            for name_, origin in annotations_of(class_)
            for field in fields_from(name_, origin, Help(""))
        ]
        definitions[name] = _object(fields, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _found(name: str, row: Any) -> Any:
    """The class of a name in the module of a row, with what the module imports for type checkers alone."""
    generic = getattr(row, "__origin__", row)
    module = __import__(generic.__module__, fromlist=[name])
    if hasattr(module, name):
        return getattr(module, name)
    imported = _typing_imports(module.__file__).get(name)
    return None if imported is None else getattr(__import__(imported, fromlist=[name]), name)


@cache
def _typing_imports(path: str) -> dict[str, str]:
    """Module by name of the imports below `if TYPE_CHECKING:`."""
    with open(path, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    return {
        alias.asname or alias.name: statement.module
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module is not None
        for alias in statement.names
    }
