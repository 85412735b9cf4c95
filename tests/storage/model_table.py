"""What semantics section 7 says, in lists and dictionaries: a table, a topic with one subscription, transactions on both.

It shares no code with the store but the enums of states and check modes. Time is a counter: whatever happens at an
instant of its own (a begin, a commit, a publication) takes the next number, as the store takes the next timestamp.
Each method is a step that users take: it changes the model and returns what is shown, or raises `Refused` with the
names of the errors of which the store must raise one.
"""

from __future__ import annotations

from collections.abc import Iterable

from storage import CheckMode, TransactionState

OPEN, COMMITTED, ABORTED = TransactionState.OPEN, TransactionState.COMMITTED, TransactionState.ABORTED
PRIORITIES = ["lowest", "low", "medium", "high", "highest"]
INLINE_MAX = 2
"""A decision finalises so many intents of a table at the most."""

Value = bytes | None
"""None for a deletion."""


class Refused(Exception):
    """The step must be refused, with one of these errors."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = set(names)


class Txn:
    """A transaction. One that is read-committed only reads tables; an attached one keeps what it writes to itself.

    Attributes:
        at: when it began, its place among all that happens.
        version: its timestamp in the store.
        consumed: when the newest message that it acknowledged came to be readable; 0 for none.
        sent: messages that are kept in its process, oldest first; `sent_ns` is when the first of them was sent.
        told: errors that its process may be told once, of what was tried without it.
    """

    def __init__(self, at: int, version: int, attached: bool, priority: str = "medium") -> None:
        self.at = at
        self.version = version
        self.attached = attached
        self.priority = PRIORITIES.index(priority)
        self.check: CheckMode | None = None
        self.deadline_ns = 1 << 63
        self.state = OPEN
        self.kept: dict[bytes, Value] = {}
        self.sent: list[Message] = []
        self.sent_ns = 0
        self.told: set[str] = set()
        self.uses_tables = False
        self.consumed = 0

    def beats(self, other: Txn) -> bool:
        return (self.priority, self.at) > (other.priority, other.at)

    def __repr__(self) -> str:
        return f"txn {self.at}"


class Row:
    """What stands under a key: finalised versions, the newest last, and the intent of a transaction."""

    def __init__(self) -> None:
        self.versions: list[tuple[Txn, Value]] = []
        self.intent: tuple[Txn, Value] | None = None

    def committed(self) -> list[tuple[Txn, Value]]:
        """All committed versions, finalised or not."""
        is_one = self.intent is not None and self.intent[0].state is COMMITTED
        return self.versions + ([self.intent] if is_one and self.intent else [])

    def finalize(self) -> None:
        """Make the intent of a decided transaction a version, or nothing."""
        if self.intent is not None and self.intent[0].state is not OPEN:
            self.versions = self.committed()
            self.intent = None


class Message:
    """A message, in a transaction or plain; readable since then, 0 if it is not committed."""

    def __init__(self, value: bytes, txn: Txn | None, readable: int) -> None:
        self.value = value
        self.txn = txn
        self.readable = readable
        self.is_acknowledged = False
        self.pending: Txn | None = None

    @property
    def state(self) -> TransactionState:
        return COMMITTED if self.txn is None else self.txn.state


class TableModel:
    """The whole.

    Attributes:
        watermark: the timestamp below which writes are refused, as reads were forgotten; 0 for none.
        came_to: the error that the store gave for this step; only looked at where the rules leave it a choice.
    """

    def __init__(self, retention_ns: int) -> None:
        self.rows: dict[bytes, Row] = {}
        self.messages: list[Message] = []
        self.txns: list[Txn] = []
        self.now = 0
        self.now_ns = 0
        self.wall_ns = 0
        self._retention_ns = retention_ns
        self._read_keys: dict[bytes, int] = {}
        self._read_ranges: list[tuple[bytes, bytes | None, int]] = []
        self.came_to: str | None = None
        self.watermark = 0
        self._is_file_gone = False

    def tick(self) -> int:
        self.now += 1
        return self.now

    def begin(self, txn: Txn) -> Txn:
        self.txns.append(txn)
        return txn

    def open_transactions(self) -> list[Txn]:
        return [txn for txn in self.txns if txn.state is OPEN]

    def window_start(self) -> int:
        return self.wall_ns - self._retention_ns

    # What an operation needs

    def check_open(self, txn: Txn) -> None:
        """Of any operation in a transaction."""
        if txn.state is not OPEN:
            raise Refused("TransactionNotOpen", "LostConflict", *txn.told)
        if self.now_ns >= txn.deadline_ns:
            self.end(txn, committed=False)
            raise Refused("TransactionTimedOut")

    def check_table_use(self, txn: Txn) -> None:
        """Of an operation on a table: not older than what it has consumed, nor than what is kept."""
        self.check_open(txn)
        is_behind = not txn.uses_tables and txn.consumed > txn.at
        if is_behind or txn.version < self.window_start():
            self.end(txn, committed=False)
            raise Refused("RequestTooOld")
        txn.uses_tables = True

    def end(self, txn: Txn, committed: bool) -> None:
        """Decide it for everything that it touched."""
        assert txn.state is OPEN
        txn.sent = []
        txn.state, at = (COMMITTED if committed else ABORTED), self.tick()
        for message in self.messages:
            if message.txn is txn and committed:
                message.readable = at
            if message.pending is txn:
                message.pending, message.is_acknowledged = None, committed
        mine = [row for row in self.rows.values() if row.intent is not None and row.intent[0] is txn]
        if len(mine) <= INLINE_MAX:
            for row in mine:
                row.finalize()

    # Reading

    def read(self, txn: Txn, key: bytes) -> tuple[Value, int]:
        """What a serializable transaction sees under a key, and its version (0: none)."""
        if key in txn.kept:
            self.check_open(txn)
            return txn.kept[key], 0 if txn.kept[key] is None else txn.version
        self.check_table_use(txn)
        self._read_keys[key] = max(txn.at, self._read_keys.get(key, 0))
        return self._see(txn, key)

    def scan(
        self, txn: Txn, start: bytes, end: bytes | None, reverse: bool, limit: int | None
    ) -> list[tuple[bytes, Value]]:
        """What it sees in a range; that is protected, up to the last row where the limit is reached."""
        if limit == 0:
            return []
        self.check_table_use(txn)
        if limit is None:
            self._read_ranges.append((start, end, txn.at))  # before anything is met that it may lose to
        found: list[tuple[bytes, Value]] = []
        for key in sorted(set(self.rows) | set(txn.kept), reverse=reverse):
            if key >= start and (end is None or key < end):
                value = txn.kept[key] if key in txn.kept else self._see(txn, key)[0]
                if value is not None:
                    found.append((key, value))
                if limit is not None and len(found) == limit:
                    start, end = (key, end) if reverse else (start, key + b"\0")
                    break
        self._read_ranges.append((start, end, txn.at))
        return found

    def _see(self, txn: Txn, key: bytes) -> tuple[Value, int]:
        """The newest version at or below its timestamp, its own intent included; what is in the way is pushed."""
        row = self.rows.get(key, Row())
        if row.intent is not None and row.intent[0] is not txn and row.intent[0].at < txn.at:
            self._push(txn, {row.intent[0]})
        versions = row.committed() + ([row.intent] if row.intent and row.intent[0] is txn else [])
        below = [(each.version, value) for each, value in versions if each.at <= txn.at]
        version, value = below[-1] if below else (0, None)
        return value, 0 if value is None else version

    def _push(self, txn: Txn, others: set[Txn]) -> None:
        """Of two that meet one is aborted; nobody is if it is the one that acts."""
        others = {other for other in others if other.state is OPEN}
        if not all(txn.beats(other) for other in others):
            self.end(txn, committed=False)
            raise Refused("LostConflict")
        for other in others:
            self.end(other, committed=False)

    def committed_now(self, key: bytes, check: CheckMode, start: int) -> tuple[Value, int]:
        """What a read-committed read that began at `start` sees, and its version."""
        row = self.rows.get(key, Row())
        looks = check is CheckMode.FULL or (
            check is CheckMode.MINIMAL and row.intent is not None and row.intent[0].at <= start
        )
        versions = row.committed() if looks else row.versions
        if not versions or versions[-1][1] is None:
            return None, 0
        return versions[-1][1], versions[-1][0].version

    def in_the_past(self, key: bytes, version: int, unchanged_until: int) -> Value:
        """What was committed at a version, after which nothing was issued up to a later time."""
        if unchanged_until < self.window_start():
            raise Refused("RequestTooOld")
        below = [value for txn, value in self.rows.get(key, Row()).committed() if txn.version <= version]
        return below[-1] if below else None

    # Writing

    def judge(self, txn: Txn, keys: Iterable[bytes]) -> None:
        """Whether these keys may be written now; who loses is aborted."""
        keys = list(keys)
        assert not (keys and self._is_file_gone), "a write has to find the file of reads gone"
        if any(self._is_too_late(txn, key) for key in keys):
            self.end(txn, committed=False)
            raise Refused("WriteTooOld")
        intents = [self.rows[key].intent for key in keys if key in self.rows]
        self._push(txn, {each[0] for each in intents if each is not None and each[0] is not txn})

    def _is_too_late(self, txn: Txn, key: bytes) -> bool:
        is_read = self._read_keys.get(key, 0) > txn.at or txn.version < self.watermark
        is_read |= any(
            at > txn.at and key >= start and (end is None or key < end)
            for start, end, at in self._read_ranges
        )
        return is_read or any(each.at > txn.at for each, _ in self.rows.get(key, Row()).committed())

    def place(self, txn: Txn, writes: dict[bytes, Value]) -> None:
        """Leave intents."""
        self.check_table_use(txn)
        self.judge(txn, writes)
        for key, value in writes.items():
            row = self.rows.setdefault(key, Row())
            row.finalize()
            row.intent = (txn, value)

    def put(self, txn: Txn, key: bytes, value: Value) -> None:
        """In a transaction: kept by an attached one, else an intent at once."""
        if not txn.attached:
            self.place(txn, {key: value})
            return
        self.check_open(txn)
        is_behind = not txn.uses_tables and txn.consumed > txn.at
        is_too_old = txn.version < self.window_start() and self.came_to == "RequestTooOld"
        if is_behind or is_too_old:
            self.check_table_use(txn)
        # One that is too old fails at its commit at the latest.
        txn.uses_tables = True
        txn.kept[key] = value

    def flush(self, txn: Txn) -> None:
        if txn.kept:
            self.place(txn, txn.kept)
            txn.kept = {}
        elif txn.sent:
            self.check_open(txn)
        self.write_sent(txn)

    def commit(self, txn: Txn) -> None:
        if txn.state is COMMITTED:
            return
        self.check_open(txn)
        if txn.uses_tables:
            self.check_table_use(txn)
        self.judge(txn, txn.kept)
        self.write_sent(txn)
        for key, value in txn.kept.items():
            row = self.rows.setdefault(key, Row())
            row.finalize()
            row.intent = None
            row.versions.append((txn, value))
        txn.kept = {}
        self.end(txn, committed=True)

    def abort(self, txn: Txn) -> None:
        if txn.state is COMMITTED:
            raise Refused("TransactionNotOpen")
        if txn.state is OPEN:
            self.end(txn, committed=False)

    def forget_reads(self) -> None:
        """The file of reads is gone; a process that has the file mapped goes on with it until a write."""
        self._is_file_gone = True

    def notice(self, watermark: int) -> None:
        """The store found the file gone: a transaction below the last issued timestamp cannot write any more."""
        assert self._is_file_gone, "reads are forgotten only with their file"
        assert all(txn.version <= watermark for txn in self.txns), "no read of any transaction is above"
        self._is_file_gone, self.watermark = False, watermark

    def collect(self, left: set[bytes]) -> None:
        """gc has finalised what was decided when it looked; it left the intents of these keys."""
        for key in set(self.rows) - left:
            self.rows[key].finalize()

    def intents(self) -> dict[bytes, Txn]:
        """Whose intent stands under a key."""
        return {key: row.intent[0] for key, row in self.rows.items() if row.intent is not None}

    # Messages

    def send(self, value: bytes, txn: Txn | None) -> None:
        if txn is not None:
            self.check_open(txn)
        message = Message(value, txn, self.tick() if txn is None else 0)
        if txn is None or not txn.attached:
            self.messages.append(message)
            return
        if not txn.sent:
            txn.sent_ns = self.now_ns
        txn.sent.append(message)

    def write_sent(self, txn: Txn) -> None:
        """What is kept takes its place in the topic."""
        self.messages += txn.sent
        txn.sent = []

    def write_overdue(self, kept_ns: int, until_ns: int) -> None:
        """Until a moment, what is kept for so long is written, the oldest first."""
        due = [txn for txn in self.txns if txn.sent and txn.sent_ns + kept_ns <= until_ns]
        for txn in sorted(due, key=lambda each: each.sent_ns):
            self.now_ns = txn.sent_ns + kept_ns
            try:
                self.flush_sent(txn)
            except Refused as refused:
                txn.told |= refused.names

    def flush_sent(self, txn: Txn) -> None:
        self.check_open(txn)
        self.write_sent(txn)

    def visible(self) -> list[Message]:
        """What a READ_COMMITTED reader is shown: committed, before the first message of an open transaction."""
        found = []
        for message in self.messages:
            if message.state is OPEN:
                break
            if message.state is COMMITTED:
                found.append(message)
        return found

    def deliverable(self) -> list[Message]:
        return [each for each in self.visible() if not each.is_acknowledged and each.pending is None]

    def acknowledge(self, message: Message, txn: Txn | None) -> None:
        if txn is None:
            message.is_acknowledged = True
            return
        self.check_open(txn)
        if txn.uses_tables and message.readable > txn.at:
            raise Refused("NotDeliverable")
        message.pending = txn
        txn.consumed = max(txn.consumed, message.readable)
