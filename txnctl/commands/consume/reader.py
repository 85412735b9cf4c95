"""`consume` without a subscription: reads, and leaves nothing behind."""

from __future__ import annotations

from time import sleep

from storage.errors import WaitTimeout
from txnctl.cli.at_time import position_of
from txnctl.cli.newest import newest_messages
from txnctl.commands.consume.blocked_note import Hidden
from txnctl.commands.consume.bounds import ReadRange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Reader
    from txnctl.cli.context import Context
    from txnctl.commands.consume.options import ConsumeOptions
    from txnctl.commands.consume.output import Lines
    from txnctl.commands.consume.stop_condition import Patience

_LOOK_MIN_S = 0.0005
_LOOK_MAX_S = 0.01
"""How often a follower looks for a commit: the more often, the shorter ago the last message came."""


def read(context: Context, topic: str, lines: Lines, patience: Patience, options: ConsumeOptions) -> None:
    """Print the visible messages from --from to --to, then wait for more where asked."""
    from storage import EARLIEST, IsolationLevel

    with context.open_store(context.store_path, read_only=True) as store:
        level = options.isolation_level or IsolationLevel.READ_COMMITTED
        if options.tail is None:
            begin = position_of(store, topic, options.start or EARLIEST)
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
    while True:
        if _print_visible(reader, lines, patience, bounds):
            return True
        lines.write_out()
        while not _comes(reader, patience):
            if patience.is_over():
                return False
            lines.check_reader()
            hidden.while_waiting(patience)


def _print_visible(reader: Reader, lines: Lines, patience: Patience, bounds: ReadRange) -> bool:
    """Print the messages visible now; whether that was all that was asked for."""
    for entry in reader.entries():
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


def _comes(reader: Reader, patience: Patience) -> bool:
    """Wait a little for more; whether it came."""
    waited, slice_s = 0.0, patience.slice_s()
    while not reader.has_message_available():
        if waited >= slice_s:
            return False
        pause = min(_LOOK_MAX_S, max(_LOOK_MIN_S, patience.idle_s / 100))
        sleep(pause)
        waited += pause
    return True
