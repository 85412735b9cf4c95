"""A reader: reads a topic at an isolation level, from a position on, and leaves nothing behind.

Invariants 2, 3, 4: at READ_COMMITTED nothing of an open or aborted transaction; at READ_UNCOMMITTED every message in
place; always in position order. Each page comes from one view, which is closed before anything is handed out.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.client.blocker import Blocked, find_blocker
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import WaitTimeout
from storage.process.clock import nanoseconds
from storage.subscription.isolation import IsolationLevel, bound, check_compacted, delivers
from storage.subscription.start_position import start_after
from storage.topic import log, other_lives, trim
from storage.topic.catalogue import Topic
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.entry import Entry
from storage.topic.message import Message, MessageOrigin
from storage.topic.open_topic import OpenTopic
from storage.txn import record as records
from storage.txn.aborted import AbortedSet
from storage.values.arguments import check_count, check_flags
from storage.values.position import EARLIEST, Extreme, MessageId, Position
from storage.values.txn_state import TransactionState


class Reader:
    """Made by `Store.reader`. For one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        topic: Topic,
        start: Position | MessageId | Extreme,
        level: IsolationLevel,
        aborted: AbortedSet,
        *,
        read_compacted: bool = False,
    ) -> None:
        """Raises:
        InvalidValue: `read_compacted` at READ_UNCOMMITTED, or neither True nor False.
        MessageNotFound: the topic never had the start.
        """
        check_flags(read_compacted=read_compacted)
        if read_compacted:
            check_compacted(level)
        self._reads_compacted = read_compacted
        self._connection = connection
        self._topic = topic
        self._origin = MessageOrigin(topic.name, topic.topic_id, connection.incarnation)
        self._level = level
        self._aborted = aborted
        self._page: list[Entry] = []
        self._at = 0
        self._index = 0
        self._seen = 0
        self._begin: MessageId | None = None
        self._is_earliest = start is EARLIEST
        with connection.view() as view:
            opened = OpenTopic.load(view, topic.topic_id, topic.name)
            other_lives.check_start(opened, start)
            self._after = start_after(opened.state, start, level)
            if read_compacted and self._is_earliest:
                self._after = compacted_view.before_first(view, topic.topic_id)
        if isinstance(start, MessageId) and start.batch_index > 0:
            self._begin = start

    @property
    def topic(self) -> str:
        return self._topic.name

    def entries(self, *, looks_on: bool = True) -> Iterator[Entry]:
        """Whole entries, to the end of the visible log. The fast way to read much.

        Where `start` named a message inside a batch, or some of a batch was read before, `first_index` of the entry
        is the first message to read.

        Args:
            looks_on: look for more after the entries at hand, of which `has_message_available` has told. A follower
                that does not look on writes a line out one look sooner.
        """
        check_flags(looks_on=looks_on)
        return self._entries(looks_on)

    def _entries(self, looks_on: bool) -> Iterator[Entry]:
        while (self._at < len(self._page) and not self._connection.is_closed) or (looks_on and self._fill()):
            entry = self._page[self._at]
            entry.first_index = self._index
            self._at, self._index = self._at + 1, 0
            yield entry

    def read_batch(self, max_messages: int) -> list[Message]:
        """The next messages, at most so many; fewer, or none, at the end of the visible log."""
        check_count("a number of messages", max_messages)
        messages: list[Message] = []
        while len(messages) < max_messages:
            message = self._next()
            if message is None:
                break
            messages.append(message)
        return messages

    def has_message_available(self, timeout: float = 0) -> bool:
        """Whether `read_next` would return at once, now or within `timeout` seconds. A promised message always comes.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        until_ns = self._connection.clock.boot_ns() + nanoseconds(timeout, "a timeout")
        while not ((self._at < len(self._page) and not self._connection.is_closed) or self._fill()):
            if not timeout or not self._connection.wait_for_commit(self._seen, until_ns):
                self._connection.look_in_place()
                return False
        return True

    def read_next(self, timeout: float | None = None) -> Message:
        """Wait for the next message.

        Args:
            timeout: seconds; None waits for ever.

        Raises:
            WaitTimeout
            MessageNotFound: the messages that follow were trimmed before they were read.
        """
        clock = self._connection.clock
        until_ns = clock.boot_ns() + nanoseconds(timeout, "a timeout")
        while True:
            message = self._next()
            if message is not None:
                return message
            if not self._connection.wait_for_commit(self._seen, until_ns):
                raise WaitTimeout(
                    f"no message came on {self._topic.name} within {timeout:g} s", topic=self._topic.full_name
                )

    def __iter__(self) -> Iterator[Message]:
        """Messages to the end of the visible log."""
        while (message := self._next()) is not None:
            yield message

    def blocked_by(self) -> Blocked | None:
        """The open transaction at which reading stopped, or None if nothing more is there."""
        with self._connection.view() as view:
            return find_blocker(view, self._topic.topic_id, self._level)

    def close(self) -> None:
        """Forget the page, which is all that a reader holds."""
        self._page = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _next(self) -> Message | None:
        if (self._connection.is_closed or self._at >= len(self._page)) and not self._fill():
            return None
        entry = self._page[self._at]
        message = entry.message(self._index, self._origin)
        self._index += 1
        if self._index >= entry.count:
            self._at, self._index = self._at + 1, 0
        return message

    def _fill(self) -> bool:
        """Read the next page that has something to hand out; False at the end of the visible log."""
        while True:
            with self._connection.view() as view:
                self._seen = view.commit
                topic = OpenTopic.load(view, self._topic.topic_id, self._topic.name)
                compacted = self._compacted_page(view) if self._reads_compacted else []
                if compacted:
                    self._page, last = compacted, compacted[-1].position
                else:
                    if self._is_earliest:
                        self._after = max(self._after, Position(topic.state.first_ledger, -1))
                    trim.check_kept(topic, self._after)
                    through = bound(self._level, topic.state.max_read, topic.state.last_confirmed)
                    if self._after >= through:
                        return False
                    page = log.page(view, self._topic.topic_id, self._after, through)
                    if not page:
                        return False
                    last = page[-1].position
                    self._page = visible(topic, self._level, self._aborted, self._after, page)
            self._after, self._at, self._index = last, 0, 0
            self._is_earliest = False
            if self._begin is not None:
                self._begin_inside(self._begin)
            if self._page:
                return True

    def _compacted_page(self, view: ReadView) -> list[Entry]:
        """The next page of the compacted view; empty behind its last message, where the log goes on at the horizon."""
        state = compaction_state.load(view, self._topic.topic_id)
        if state is None or state.horizon is None or self._after >= state.horizon:
            return []
        page = compacted_view.page(view, self._topic.topic_id, state, self._after, state.horizon)
        if not page:
            self._after = state.horizon
        return list(page)

    def _begin_inside(self, begin: MessageId) -> None:
        """The start named a message inside a batch: leave out those before it, if that entry is to be seen at all."""
        self._begin = None
        if self._page and self._page[0].position == begin.position:
            self._index = self._page[0].index_of(begin.batch_index)
            if self._index >= self._page[0].count:
                del self._page[0]
                self._index = 0


def visible(
    topic: OpenTopic[ReadView], level: IsolationLevel, aborted: AbortedSet, after: Position, page: list[Entry]
) -> list[Entry]:
    """The entries of a page, read in this view after `after`, that the level delivers, with their states."""
    aborted.load(topic, after, page[-1].position)
    ids = aborted.ids
    visible_entries = [entry for entry in page if delivers(level, entry.kind, entry.txn, ids)]
    states: dict[int, TransactionState] = {}
    for entry in visible_entries:
        if entry.txn:
            if level is IsolationLevel.READ_COMMITTED:
                entry.txn_state = TransactionState.COMMITTED
                continue
            if entry.txn not in states:
                states[entry.txn] = records.state_of(topic.view, entry.txn)
            entry.txn_state = states[entry.txn]
    return visible_entries
