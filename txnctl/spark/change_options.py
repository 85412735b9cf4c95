"""The options of a read of the changes of a table, as a batch and as a stream. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from storage.errors import InvalidValue
from storage.values.names import check_name
from txnctl.output.timestamp import NOW, moment
from txnctl.spark.option_values import count, flag, told_of

OPTIONS: Final = ("path", "table", "readChanges", "since", "failOnDataLoss", "minPartitions")
"""The options of both kinds of read."""


@dataclass(frozen=True)
class ChangeOptions:
    """The options of a read of the changes of a table.

    Attributes:
        since: the version after which changes are read; None for all that are kept, NOW for the newest.
        until: the version up to which changes are read; None for the newest.
        max_changes: changes of one micro-batch, about; None for all.
        fail_on_data_loss: whether a start before the changes that are kept is an error, or the read begins with them.
    """

    path: str
    table: str
    since: int | None
    until: int | None
    min_partitions: int | None
    max_changes: int | None
    fail_on_data_loss: bool


def parse_changes(parsed: Mapping[str, str], path: str, *, is_stream: bool = False) -> ChangeOptions:
    """Parse the options of a read of changes, by their canonical names.

    Raises:
        InvalidValue, InvalidName
    """
    if not flag(parsed, "readChanges", False):
        raise InvalidValue(
            "a stream of a table reads its changes, which readChanges asks for",
            hint="Set readChanges to true.",
        )
    if "table" not in parsed:
        raise InvalidValue("readChanges reads the changes of a table", hint="Name it by the option table.")
    since, until = _version(parsed, "since"), _version(parsed, "until")
    if is_stream and since == NOW:
        raise InvalidValue(
            "a stream that is killed before its first batch asks for its start again: `now` would be later then",
            hint="Give the version of now in its place, which Table.version_at() names.",
        )
    return ChangeOptions(
        path, check_name("table name", parsed["table"]), since, None if until == NOW else until,
        count(parsed, "minPartitions"), count(parsed, "maxChangesPerTrigger"), flag(parsed, "failOnDataLoss", True),
    )  # fmt: skip


def _version(parsed: Mapping[str, str], name: str) -> int | None:
    """Parse a version or a time, to the end of its millisecond; `earliest`, as without the option, is None."""
    text = parsed.get(name)
    if text is None or (name == "since" and text == "earliest"):
        return None
    with told_of(name):
        version = moment(text)
    if version is None:
        raise InvalidValue(
            f"{name} {text[:80]!r} is neither a version nor a time",
            hint="Write a row's timestamp, RFC 3339 with a zone, a date, milliseconds since 1970, or now.",
        )
    return version
