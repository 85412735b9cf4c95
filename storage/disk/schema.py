"""The one list of everything that is on disk: each named database, its key and its value.

The bytes are defined in docs/FORMAT.md, which tests pin with golden bytes. Notation: u64 and i64 are big-endian;
`name` is ASCII; M(...) is MessagePack of an array with these elements in this order. Every value begins with a CRC-32
over database seed, key and value, which every read checks: LMDB notices no flipped bit.
"""

from __future__ import annotations

from zlib import crc32

FORMAT_NUMBER = 1
"""The layout below. A store of another number is refused, untouched."""


class Database:
    """A named database: its name, the seed that ties a record to it, and how much its checksum covers.

    `sealed` bytes of the payload are covered, all if None: an entry's header, which holds a checksum of the body, so
    that the aborted filter need not read bodies.
    """

    __slots__ = ("name", "sealed", "seed")

    def __init__(self, name: str, sealed: int | None = None) -> None:
        self.name = name
        self.sealed = sealed
        self.seed = crc32(name.encode("ascii"))

    def __repr__(self) -> str:
        return f"Database({self.name!r})"


STORE = Database("store")
"""name -> M(...): `format` (format number, store id, created ms)."""

HEADS = Database("heads")
"""u64 object id -> what changes with every append: the store's own head at id 0, a topic's head, or with the top bit
set a table's."""

TOPICS = Database("topics")
"""topic name -> M(topic record). A deleted topic leaves a record, so that ledger ids and epochs go on counting."""

LEDGERS = Database("ledgers")
"""u64 topic, u64 ledger -> M(ledger record), for every ledger that was closed."""

ENTRY_HEADER_BYTES = 58
ENTRIES = Database("entries", sealed=ENTRY_HEADER_BYTES)
"""u64 topic, u64 ledger, u64 entry -> entry header, M(columns): a message, a batch of messages, or a marker."""

PRODUCERS = Database("producers")
"""u64 topic, u64 session -> M(session record): connected producers, and waiting ones in the order of their turn."""

OWNERS = Database("owners")
"""u64 topic, u64 epoch -> M(session record, grant, end): who owned the topic, the last thousand."""

SEQUENCES = Database("sequences")
"""u64 topic, producer name, 00, u64 first -> u64 last, u64 txn: used sequence ids; txn 0 once plain or committed."""

TXNS = Database("txns")
"""u64 txn -> M(transaction record)."""

TXN_PARTS = Database("txn_parts")
"""u64 txn, u8 kind, u64 object -> M(part): what the transaction did to one topic, subscription or table."""

TXN_DEADLINES = Database("txn_deadlines")
"""u64 store clock ns, u64 txn -> nothing: the open transactions, most urgent first."""

TXN_RUNS = Database("txn_runs")
"""u64 topic, u64 txn, u64 ledger, u64 first entry -> u64 last entry, u64 messages up to there:
where its entries are."""

OPEN_FIRST = Database("open_first")
"""u64 topic, u64 ledger, u64 entry, u64 txn -> i64 ledger, i64 entry: first messages of open transactions, in order,
with the position just before each. The first of a topic gives its maxReadPosition."""

ABORTED = Database("aborted")
"""u64 topic, u64 segment -> the aborted set, in segments."""

LEASES = Database("leases")
"""u64 lease -> M(owner): processes that hold something while they live."""

LEASE_TXNS = Database("lease_txns")
"""u64 lease, u64 txn -> nothing: open transactions that end with their owner's death."""

SUBSCRIPTIONS = Database("subscriptions")
"""u64 topic, subscription name -> M(subscription record)."""

CURSORS = Database("cursors")
"""u64 subscription -> M(cursor): markDeletePosition, how far dispatch has come, counters."""

ACKS = Database("acks")
"""u64 subscription, u64 ledger, u64 first entry -> u64 last entry, bitmap: acknowledged ahead of markDeletePosition."""

DELIVERIES = Database("deliveries")
"""u64 subscription, u64 ledger, u64 entry -> M(parts): messages handed out or held back, and to whom."""

AWAITED = Database("awaited")
"""u64 subscription, u64 txn -> M(awaited): with `--on-open skip`, transactions that dispatch has passed over."""

HELD = Database("held")
"""u64 subscription, u64 txn, u64 ledger, u64 entry -> bitmap: on Key_Shared with `--on-open skip`, committed messages
that wait behind an awaited transaction's message of their key."""

CONSUMERS = Database("consumers")
"""u64 subscription, u64 consumer -> M(consumer record)."""

PENDING = Database("pending")
"""u64 subscription, u64 ledger, u64 entry, u64 txn -> bitmap: acknowledgements that wait for their transaction."""

TXN_PENDING = Database("txn_pending")
"""u64 txn, u64 subscription, u64 ledger, u64 entry -> nothing: the same, to be found by transaction."""

AUDIT = Database("audit")
"""u64 number -> M(audit record): changes by operators; with its highest bit set, transactions that expired."""

PURGES = Database("purges")
"""u64 topic -> nothing: deleted topics whose entries are still to be removed."""

TABLES = Database("tables")
"""table name -> M(table record)."""

ROWS = Database("rows")
"""u64 table, key -> row: its newest finalised version, and at most one write intent."""

VERSIONS = Database("versions")
"""u64 table, key in groups of 8, u64 all ones minus version -> version: committed ones that were superseded."""

TXN_KEYS = Database("txn_keys")
"""u64 txn, u64 table, key -> nothing: where a transaction's write intents are."""

CONFLICTS = Database("conflicts")
"""u64 number -> M(conflict): who lost to whom over which key; the latest ones."""

TABLE_PURGES = Database("table_purges")
"""u64 table -> nothing: deleted tables whose rows are still to be removed."""

ALL = (
    STORE, HEADS, TOPICS, LEDGERS, ENTRIES, PRODUCERS, OWNERS, SEQUENCES, TXNS, TXN_PARTS, TXN_DEADLINES, TXN_RUNS,
    OPEN_FIRST, ABORTED, LEASES, LEASE_TXNS, SUBSCRIPTIONS, CURSORS, ACKS, DELIVERIES, AWAITED, HELD, CONSUMERS,
    PENDING, TXN_PENDING, AUDIT, PURGES, TABLES, ROWS, VERSIONS, TXN_KEYS, CONFLICTS, TABLE_PURGES,
)  # fmt: skip

PART_TOPIC = 1
PART_SUBSCRIPTION = 2
PART_TABLE = 3
"""Kinds of what a transaction touches, in the key of TXN_PARTS."""
