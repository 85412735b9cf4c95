"""The formats that `produce` reads: lines, NDJSON, CSV, raw. Each reader turns input into batches and passes each
batch on.

A reader goes on after a bad line: the batch carries the error, and the receiver of the batch decides.
"""

from __future__ import annotations

from storage.errors import BadInput, BadLine, MessageTooLarge
from storage.limits import MESSAGE_BYTES_MAX, PROPERTIES_MAX
from txnctl.commands.produce.sending import Batch, OptionalColumns
from txnctl.input.lines import LineReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from txnctl.input.lines import Block
    from txnctl.input.source import Source

    Take = Callable[[Batch], None]

_MEBIBYTE = 1024 * 1024
_NDJSON_LINE_BYTES_MAX = 6 * MESSAGE_BYTES_MAX + _MEBIBYTE
"""A message's bytes may each be written as \\u0000."""

_TIME_MAX = (1 << 63) - 1


def read_lines(source: Source, take: Take, *, skips: bool) -> None:  # noqa: ARG001  all readers are called alike
    """A line is a message."""
    for block in LineReader(source, MESSAGE_BYTES_MAX):
        lines = block.lines
        take(Batch(lines, range(block.first, block.first + len(lines)), errors=_too_long(block)))


def read_ndjson(source: Source, take: Take, *, skips: bool) -> None:
    """A line is an object."""
    from txnctl.input.message_lines import parse

    for block in LineReader(source, _NDJSON_LINE_BYTES_MAX):
        parsed = parse(block.lines, block.first, skip_bad=skips)
        batch = Batch(
            parsed.values,
            parsed.numbers,
            OptionalColumns(parsed.keys, parsed.properties, parsed.event_times, parsed.delivery_times),
            [*parsed.errors, *_too_long(block)],
        )
        take(_without_impossible(batch))


def read_csv(source: Source, take: Take, *, skips: bool) -> None:  # noqa: ARG001  all readers are called alike
    """A record under a header is a message."""
    from txnctl.commands.produce.csv import CsvReader

    CsvReader(source, take).read_records()


def read_raw(source: Source, take: Take, *, skips: bool) -> None:  # noqa: ARG001  all readers are called alike
    """The whole input is one message."""
    content = source.read_all(MESSAGE_BYTES_MAX)
    if len(content) > MESSAGE_BYTES_MAX:
        take(Batch([], [], errors=[_too_large("the message", 1)], unit="message"))
    else:
        take(Batch([content], [1], unit="message"))


READERS = {"lines": read_lines, "ndjson": read_ndjson, "csv": read_csv, "raw": read_raw}


def _too_long(block: Block) -> list[BadInput]:
    return [] if block.too_long is None else [_too_large(f"line {block.too_long}", block.too_long)]


def _too_large(what: str, number: int) -> MessageTooLarge:
    return MessageTooLarge(
        f"{what} is larger than a message may be, {MESSAGE_BYTES_MAX:,} bytes",
        hint="Split the message, or store the content elsewhere and send a reference.",
        lineNumber=number,
    )


def _without_impossible(batch: Batch) -> Batch:
    """Leave out well-formed lines that cannot be a message, with an error for each."""
    errors: list[BadInput] = []
    for name, times in (("eventTimeMs", batch.event_times), ("deliveryTimeMs", batch.delivery_times)):
        for index, time in enumerate(times or ()):
            if time is not None and not 0 <= time <= _TIME_MAX:
                errors.append(_impossible(batch.numbers[index], f'"{name}" is not milliseconds since 1970'))
    for index, message_properties in enumerate(batch.properties or ()):
        if message_properties is not None and len(message_properties) > PROPERTIES_MAX:
            errors.append(_impossible(batch.numbers[index], f"more than {PROPERTIES_MAX:,} properties"))
    if not errors:
        return batch
    bad = {error.details["lineNumber"] for error in errors}
    keep = [index for index, number in enumerate(batch.numbers) if number not in bad]
    return Batch(
        [batch.values[index] for index in keep],
        [batch.numbers[index] for index in keep],
        OptionalColumns(
            [batch.keys[index] for index in keep] if batch.keys else None,
            [batch.properties[index] for index in keep] if batch.properties else None,
            [batch.event_times[index] for index in keep] if batch.event_times else None,
            [batch.delivery_times[index] for index in keep] if batch.delivery_times else None,
        ),
        [*batch.errors, *errors],
    )


def _impossible(number: int, why: str) -> BadLine:
    return BadLine(f"line {number}: {why}", lineNumber=number)
