"""The list of everything on disk: each named database with key and value.

The bytes are defined in docs/FORMAT.md, which tests pin with golden bytes. Notation: u64 and i64 are big-endian;
`name` is ASCII; M(...) is MessagePack of an array with these elements in this order. Every value begins with a CRC-32
over database seed, key and value, which every read checks, as LMDB does not notice a flipped bit.
"""

from __future__ import annotations

from zlib import crc32

FORMAT_NUMBER = 2
"""The number of the layout below, which a store has that this release creates or writes."""

FORMATS_READ = (1, FORMAT_NUMBER)
"""The numbers that this release reads. A store with a different number is refused and left untouched."""


class Database:
    """A named database.

    Attributes:
        name: LMDB's name of the database.
        seed: the start of each checksum, which ties a record to its database.
        sealed: bytes of the payload that the checksum covers; None for all. The checksum of an entry covers the header,
            which holds a checksum of the body, so that the aborted filter need not read bodies.
    """

    __slots__ = ("name", "sealed", "seed")

    def __init__(self, name: str, sealed: int | None = None) -> None:
        self.name = name
        self.sealed = sealed
        self.seed = crc32(name.encode("ascii"))

    def __repr__(self) -> str:
        return f"Database({self.name!r})"


STORE = Database("store")
"""name -> M(...): `format` (format number, store id, created ms); `retention`; `reserve` (bytes); `server` on a
server."""

FORMAT_KEY = b"format"
SERVER_KEY = b"server"

HEADS = Database("heads")
"""u64 object id -> the state that every append changes: the superblock at id 0, a topic's state, or, with the top bit
set, a table's state."""

TOPICS = Database("topics")
"""topic name -> M(topic record). The record outlives the topic, so that ledger ids and epochs go on counting."""

LEDGERS = Database("ledgers")
"""u64 topic, u64 ledger -> M(ledger record), for every closed ledger."""

ENTRY_HEADER_BYTES = 58
ENTRIES = Database("entries", sealed=ENTRY_HEADER_BYTES)
"""u64 topic, u64 ledger, u64 entry -> entry header, M(columns): a message, a batch of messages, or a marker."""

PRODUCERS = Database("producers")
"""u64 topic, u64 session -> M(session record): connected producers, and waiting ones in the order of their turn."""

SESSION_INDEX = Database("session_index")
"""u64 topic -> u64 waiting sessions, u64 last session examined for death; u64 topic, name of the producer, 00, u64
session -> nothing: connected sessions by name."""

OWNERS = Database("owners")
"""u64 topic, u64 epoch -> M(session record, grant, end): the last thousand owners of the topic."""

SEQUENCES = Database("sequences")
"""u64 topic, producer name, 00, u64 first -> u64 last, u64 txn: used sequence ids; txn 0 once plain or committed."""

TXNS = Database("txns")
"""u64 txn -> M(transaction record)."""

TXN_PARTS = Database("txn_parts")
"""u64 txn, u8 kind, u64 object -> M(part): the transaction's changes to one topic, subscription or table."""

TXN_DEADLINES = Database("txn_deadlines")
"""u64 store clock ns, u64 txn -> nothing: the open transactions, most urgent first."""

TXN_RUNS = Database("txn_runs")
"""u64 topic, u64 txn, u64 ledger, u64 first entry -> u64 last entry, u64 messages through that entry: the runs of
entries of a transaction. With the top bit of the ledger set: runs gathered by span (`lost_runs.py`)."""

OPEN_FIRST = Database("open_first")
"""u64 topic, u64 ledger, u64 entry, u64 txn -> i64 ledger, i64 entry: first messages of open transactions, in order,
with the position just before each. The first of a topic gives its maxReadPosition."""

ABORTED = Database("aborted")
"""u64 topic, u64 segment -> the aborted set, in segments."""

ABORTED_BLOCKS = Database("aborted_blocks")
"""u64 topic, u64 level, u64 block -> range and sums of some sealed segments: 4 to the power of the level, or all."""

LEASES = Database("leases")
"""u64 lease -> M(process identity): processes with transactions, sessions or consumers that end with the process."""

LEASE_TXNS = Database("lease_txns")
"""u64 lease, u64 txn -> nothing: open transactions that end with the process of the lease."""

SUBSCRIPTIONS = Database("subscriptions")
"""u64 topic, subscription name -> M(subscription record)."""

CURSORS = Database("cursors")
"""u64 subscription -> M(cursor): markDeletePosition, read position, counters."""

ACKS = Database("acks")
"""u64 subscription, u64 ledger, u64 first entry -> u64 last entry, bitmap: acknowledged ahead of markDeletePosition.
With the top bit of the ledger, of a span: -> bitmap."""

DELIVERIES = Database("deliveries")
"""u64 subscription, u64 ledger, u64 entry -> M(parts): messages delivered or held back, with the consumer. With the top
bit of the ledger, of a span."""

AWAITED = Database("awaited")
"""u64 subscription, u64 txn -> M(skipped transaction): with `--on-open skip`, transactions that dispatch skipped."""

HELD = Database("held")
"""u64 subscription, u64 txn, u64 ledger, u64 entry -> bitmap: on Key_Shared with `--on-open skip`, committed messages
behind a skipped transaction's message of the same key."""

DELAYED = Database("delayed")
"""u64 subscription, u64 ledger, u64 entry -> M(messages by due time): on Shared and Key_Shared, messages that dispatch
has passed before their delivery time. The cursor may name another number than the subscription's."""

DELAYED_DUE = Database("delayed_due")
"""u64 subscription, u64 due ms, u64 ledger, u64 entry -> nothing: the index of DELAYED by due time."""

MARKS = Database("marks")
"""u64 topic, u64 ledger, u64 entry + 1, u64 subscription -> name: subscriptions in the order of a lower bound of
markDeletePosition."""

MARK_BOUNDS = Database("mark_bounds")
"""u64 subscription -> i64 ledger, i64 entry: the lower bound under which MARKS has the subscription."""

CONSUMERS = Database("consumers")
"""u64 subscription, u64 consumer -> M(consumer record)."""

PENDING = Database("pending")
"""u64 subscription, u64 ledger, u64 entry, u64 txn -> bitmap: acknowledgements of open transactions. With the top bit
of the ledger, of a span."""

TXN_PENDING = Database("txn_pending")
"""u64 txn, u64 subscription, u64 ledger, u64 entry -> nothing: the index of PENDING by transaction."""

AUDIT = Database("audit")
"""u64 number -> M(audit record): changes by operators; with its highest bit set, transactions that expired."""

PURGES = Database("purges")
"""u64 topic -> nothing: deleted topics with entries still to be removed; with its top bit set, deleted subscriptions
with records; with both top bits set, forgotten delayed messages."""

TABLES = Database("tables")
"""table name -> M(table record)."""

ROWS = Database("rows")
"""u64 table, key -> row: the newest finalised version, and at most one write intent."""

VERSIONS = Database("versions")
"""u64 table, key in groups of 8, u64 all ones minus version -> version: superseded committed versions."""

TXN_KEYS = Database("txn_keys")
"""u64 txn, u64 table, key -> nothing: the keys of a transaction's write intents."""

CONFLICTS = Database("conflicts")
"""u64 number -> M(conflict): loser, winner and key of the latest conflicts."""

TABLE_PURGES = Database("table_purges")
"""u64 table -> nothing: deleted tables with rows still to be removed."""

COMPACTIONS = Database("compactions")
"""u64 topic -> M(compaction): threshold and tombstone retention of the topic, horizon and counters of its view."""

COMPACTED = Database("compacted")
"""u64 topic, u64 generation, u64 ledger, u64 entry, u32 batch index -> message header, M(message): the newest message
of a key, or a message without a key, at its original position."""

COMPACTED_KEYS = Database("compacted_keys")
"""u64 topic, u64 generation, BLAKE2b-160 of a key -> u64 ledger, u64 entry, u32 batch index: the key's message."""

TOMBSTONES = Database("tombstones")
"""u64 topic, u64 generation, u64 ms, u64 ledger, u64 entry, u32 batch index -> nothing: tombstones of a compacted
view, by the time at which each entered the view."""

TIMED = Database("timed")
"""u64 topic, u64 ledger, u64 entry -> M(timed entry): the messages of an entry with delivery times, by due time."""

TIMED_BLOCKS = Database("timed_blocks")
"""u64 topic, u64 ledger, u64 last entry -> M(block): sums of neighbouring timed entries of ended transactions."""

CHANGES = Database("changes")
"""u64 table, u64 version, key -> nothing: the versions of a table's rows, intents included, in the order of versions.
u64 table -> u64 version: up to this version the changes are not kept."""

NEW_IN_2: tuple[Database, ...] = (
    DELAYED, DELAYED_DUE, ABORTED_BLOCKS, SESSION_INDEX, COMPACTIONS, COMPACTED, COMPACTED_KEYS, TOMBSTONES, MARKS,
    MARK_BOUNDS, CHANGES, TIMED, TIMED_BLOCKS,
)  # fmt: skip
"""The databases that a store of format 1 lacks: empty for its readers, made by the upgrade."""

ALL = (
    STORE, HEADS, TOPICS, LEDGERS, ENTRIES, PRODUCERS, OWNERS, SEQUENCES, TXNS, TXN_PARTS, TXN_DEADLINES, TXN_RUNS,
    OPEN_FIRST, ABORTED, LEASES, LEASE_TXNS, SUBSCRIPTIONS, CURSORS, ACKS, DELIVERIES, AWAITED, HELD, CONSUMERS,
    PENDING, TXN_PENDING, AUDIT, PURGES, TABLES, ROWS, VERSIONS, TXN_KEYS, CONFLICTS, TABLE_PURGES,
    *NEW_IN_2,
)  # fmt: skip

PART_TOPIC = 1
PART_SUBSCRIPTION = 2
PART_TABLE = 3
"""The kinds of object in the key of TXN_PARTS."""
