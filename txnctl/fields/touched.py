"""Topics, subscriptions and tables that a transaction touched, in words."""

from __future__ import annotations

from txnctl.output.human import UNKNOWN, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.output.row import Row
_RUNS_SHOWN = 8
_KEYS_SHOWN = 8


def short_names(row: Row) -> list[str]:
    """The topics under short names."""
    from storage.values.names import short_topic_name

    return [short_topic_name(str(topic)) for topic in row["topics"]]


def touched_parts(row: Row, is_open: bool) -> Iterator[Row]:
    """The touched objects, as rows of `what`, `count`, `where`."""
    for part in row["parts"]:
        if part["kind"] == "table":
            yield _table_part(part, str(row["state"]))
            continue
        runs = [str(landmark) for landmark in part["positions"]]
        where = ", ".join(runs[:_RUNS_SHOWN]) + (", ..." if len(runs) > _RUNS_SHOWN else "")
        count = plural(part["messages"], "message")
        if part["kind"] == "topic":
            yield {"what": f"produced to {part['name']}", "count": count, "where": where}
            continue
        if part["cumulative"] is not None:
            where = ", ".join([f"through {part['cumulative']}", *([where] if where else [])])
        doing = "acknowledgements pending" if is_open else "acknowledged"
        yield {
            "what": f"{doing} on {part['name']}, {part['subscription']}",
            "count": count,
            "where": where or UNKNOWN,
        }


def _table_part(part: Row, state: str) -> Row:
    """The keys written in a table, the first by name."""
    from txnctl.output.bytes_field import bytes_cell

    keys = [bytes_cell(key, "key") for key in part["keyList"][:_KEYS_SHOWN]]
    where = ", ".join(keys) + (", ..." if keys and part["keys"] > len(keys) else "")
    doing = {"OPEN": "holds keys of", "COMMITTED": "wrote", "ABORTED": "held keys of"}[state]
    return {
        "what": f"{doing} table {part['table']}",
        "count": plural(part["keys"], "key"),
        "where": where or UNKNOWN,
    }


def touched(row: Row) -> str:
    """`3 messages on orders, payments; 2 acknowledgements; 4 keys of accounts`, or `it had touched nothing`."""
    parts = []
    if row["messages"]:
        parts.append(f"{plural(row['messages'], 'message')} on {', '.join(short_names(row))}")
    if row["acknowledgements"]:
        parts.append(plural(row["acknowledgements"], "acknowledgement"))
    parts += [
        f"{plural(part['keys'], 'key')} of {part['table']}"
        for part in row["parts"]
        if part["kind"] == "table"
    ]
    return "; ".join(parts) or "it had touched nothing"
