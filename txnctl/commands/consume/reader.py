"""`consume` without a subscription: reads, and leaves nothing behind."""

from __future__ import annotations

from storage.errors import WaitTimeout
from txnctl.cli.at_time import position_of
from txnctl.cli.newest import newest_messages
from txnctl.commands.consume.blocked_note import Hidden
from txnctl.commands.consume.bounds import ReadRange
from txnctl.commands.subscriptions.start_note import note_if_to_come

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Reader
    from txnctl.cli.context import Context
    from txnctl.commands.consume.options import ConsumeOptions
    from txnctl.commands.consume.output import Lines
    from txnctl.commands.consume.stop_condition import Patience


def read(context: Context, topic: str, lines: Lines, patience: Patience, options: ConsumeOptions) -> None:
    """Print the visible messages from --from to --to, then wait for more where asked."""
    from storage import EARLIEST, IsolationLevel

    with context.open_store(context.store_path, read_only=True) as store:
        level = options.isolation_level or IsolationLevel.READ_COMMITTED
        if options.tail is None:
            begin = position_of(store, topic, options.start or EARLIEST)
            if options.start is not None:
                note_if_to_come(context, store, topic, options.start)
        else:
            begin = newest_messages(store, topic, level, options.tail)
        reader = store.reader(
            topic, start=begin, isolation_level=level, read_compacted=options.read_compacted
        )
        hidden = Hidden(context, topic, reader.blocked_by)
        try:
            is_all = _print(reader, lines, patience, ReadRange(begin, options.end), hidden)
        except WaitTimeout:
            hidden.at_end()
            raise
        lines.finish()
        if not is_all:
            hidden.at_end()


def _print(reader: Reader, lines: Lines, patience: Patience, bounds: ReadRange, hidden: Hidden) -> bool:
    """Print until the end; whether everything that was asked for has come."""
    is_awaited = False
    while True:
        if _print_visible(reader, lines, patience, bounds, is_awaited=is_awaited):
            return True
        lines.write_out()
        is_awaited = True
        while not reader.has_message_available(patience.slice_s()):
            if patience.is_over():
                return False
            lines.check_reader()
            hidden.while_waiting(patience)


def _print_visible(
    reader: Reader, lines: Lines, patience: Patience, bounds: ReadRange, *, is_awaited: bool
) -> bool:
    """Print the messages visible now; whether that was all that was asked for.

    Args:
        is_awaited: the messages came during a wait, and are written out before the look for more.
    """
    for entry in reader.entries(looks_on=not is_awaited):
        first = bounds.first_in(entry)
        stop = bounds.stop_in(entry)
        if stop == 0:
            return True
        stop = min(stop, first + patience.left)
        if first < stop:
            lines.entry(entry, reader.topic, first, stop)
            patience.count(stop - first)
        if patience.left <= 0 or bounds.is_reached(entry):
            return True
    return False
