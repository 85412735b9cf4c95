"""Output of `consume`: messages by entry, or as delivered by a subscription.

`-o json` is written at the end, whole or not at all. A table comes in pages, as the messages come: a column appears
under new headings when a message first has something to say there.
"""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from txnctl.output.bytes_field import CELL_MAX, shown_bytes
from txnctl.output.escape import printable
from txnctl.output.messages import entry_lines, message_lines
from txnctl.output.paged_table import PAGE_ROWS, PagedTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storage.topic.entry import Entry
    from storage.topic.message import Message
    from txnctl.cli.context import Context

_ALWAYS = ("MESSAGE ID", "PUBLISHED", "KEY", "VALUE")


class Lines:
    """Prints messages in the format that was asked for."""

    def __init__(self, context: Context, *, delivered: bool) -> None:
        self._out = context.out
        self._format = context.output
        self._delivered = delivered
        self._array: list[bytes] = []
        self._page: list[Message] = []
        self._table = PagedTable(_ALWAYS, context.table_width())

    @property
    def is_held_back(self) -> bool:
        """Whether nothing is written before `finish`."""
        return self._format == "json"

    def entry(self, entry: Entry, topic: str, start: int, stop: int) -> None:
        """Print the messages of an entry from index `start` to `stop`, which is excluded."""
        if self._format in ("ndjson", "json"):
            data = entry_lines(entry, start=start, terminal=self._out.terminal)
            if stop < entry.count:
                data = b"".join(data.splitlines(keepends=True)[: stop - start])
            self._objects(data)
        elif self._format == "value":
            self._out.write_values(entry.values[start:stop])
        else:
            from storage.topic.message import MessageOrigin

            origin = MessageOrigin(topic)
            self.messages([entry.message(index, origin) for index in range(start, stop)])

    def messages(self, messages: Sequence[Message]) -> None:
        """Print messages that were handed out."""
        if self._format in ("ndjson", "json"):
            self._objects(message_lines(messages, terminal=self._out.terminal))
        elif self._format == "value":
            self._out.write_values([message.value for message in messages])
        elif self._format == "name":
            self._out.write("".join([f"{message.message_id}\n" for message in messages]))
        else:
            self._page += messages
            if len(self._page) >= PAGE_ROWS:
                self._print_page()

    def _print_page(self) -> None:
        if self._page:
            self._out.write(self._table.page([_cells(message) for message in self._page]))
            self._page.clear()

    def _objects(self, data: bytes) -> None:
        if self.is_held_back:
            self._array.append(data)
        else:
            self._out.write_bytes(data)

    def write_out(self) -> None:
        """Flush the printed lines to the kernel."""
        self._print_page()
        if not self.is_held_back:
            self._out.flush()

    def finish(self) -> None:
        """Nothing more comes."""
        if self.is_held_back:
            lines = b"".join(self._array).removesuffix(b"\n")
            self._array.clear()
            self._out.write_bytes(b"[\n%s\n]\n" % lines.replace(b"\n", b",\n") if lines else b"[]\n")
        self._print_page()
        self._out.flush()

    def check_reader(self) -> None:
        """While nothing is written: notice that the reader of the pipe is gone.

        Raises:
            BrokenPipeError
        """
        self._out.check_reader()


def _cells(message: Message) -> dict[str, str]:
    """Table cells of a message, harmless on a terminal; "" is nothing. The value comes last, unaligned."""
    value = message.value
    return {
        "MESSAGE ID": str(message.message_id),
        "PUBLISHED": rfc3339(message.publish_time) or "",
        "EVENT TIME": rfc3339(message.event_time) or "",
        "DELIVERY TIME": rfc3339(message.deliver_at) or "",
        "REDELIVERED": str(message.redelivery_count or ""),
        "TRANSACTION": "" if message.txn_id is None else str(message.txn_id),
        "STATE": "" if message.txn_state is None else message.txn_state.value,
        "PROPERTIES": _pairs(message.properties.items()),
        "KEY": "" if message.key is None else shown_bytes(message.key) or '""',
        "VALUE": "-" if value is None else shown_bytes(value),
    }


def _pairs(items: Iterable[tuple[str, str]]) -> str:
    text = ", ".join([f"{name}={value}" for name, value in items])
    return printable(text if len(text) <= CELL_MAX else f"{text[:CELL_MAX]}...")
