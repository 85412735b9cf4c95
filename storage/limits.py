"""Every bound of the store, with its unit. A bound that a store or topic may configure is a default here."""

from __future__ import annotations

MESSAGE_BYTES_MAX = 5 * 1024 * 1024
"""Value, key and properties of one message together."""

NAME_BYTES_MAX = 128
"""Each part of a topic name, a subscription, producer, consumer or label name."""

TOPIC_NAME_BYTES_MAX = 300
"""The whole topic name, `persistent://tenant/namespace/topic`."""

PROPERTIES_MAX = 1024
"""Properties of one message."""

LABELS_MAX = 32
LABEL_VALUE_BYTES_MAX = 1024
REASON_CHARACTERS_MAX = 4096

AUDIT_CHANGES_KEPT = 100_000
AUDIT_EXPIRIES_KEPT = 10_000
"""How many audit records later one of a change by an operator, or of a transaction that expired, is forgotten."""

ENTRY_BYTES_TARGET = 256 * 1024
"""A batch is split into entries of about this size; one larger message is an entry of its own."""

ENTRY_MESSAGES_MAX = 10_000
"""Messages in one entry."""

WRITE_BYTES_TARGET = 8 * 1024 * 1024
"""A bulk write commits when it has appended this much, so that no store transaction exceeds 16 MB."""

REDELIVERIES_MAX = 1_000_000
"""After how many redeliveries, at the most, a message goes to the dead-letter topic."""

SESSION_LEASE_MS = 60_000
SESSION_LEASE_MS_MAX = 24 * 3600 * 1000
"""How long a session of the shell lives without being used: by default, and at the most."""

OWNERS_KEPT = 1000
"""Owners of a topic that its history keeps."""

MESSAGE_OVERHEAD_BYTES = 32
"""What a message takes beside its own bytes while its transaction keeps it in the process."""

LEDGER_ENTRIES_MAX = 50_000
LEDGER_BYTES_MAX = 256 * 1024 * 1024
LEDGER_AGE_MAX_MS = 24 * 3600 * 1000
"""Defaults for rolling over a ledger: whichever is reached first."""

KEY_BYTES_MAX = 511
"""LMDB's bound for keys."""

READERS_MAX = 512
"""Slots of LMDB's reader table: processes and threads that read at once."""

MAP_BYTES_WANTED = 1 << 40
"""Address space asked for at open: the file is sparse, so only growth beyond this ever costs anything."""

MAP_BYTES_FALLBACK = 1 << 30
"""Address space where the process is limited (RLIMIT_AS); it then grows by doubling."""

MAP_BYTES_SPARE = 1 << 26
"""The least room for growth with which a store is opened."""

LOCK_TIMEOUT_S = 5.0
"""Default wait for the writer gate."""

LOCK_NOTE_S = 1.0
"""After this long a waiter is told who holds the gate."""

TRANSACTION_TIMEOUT_MS = 10 * 60 * 1000
TRANSACTION_TIMEOUT_MS_MAX = 24 * 3600 * 1000

REAP_PER_WRITE_MAX = 4
"""Overdue or orphaned transactions that one write ends on its way."""

REAP_STEP_MAX = 200
"""Overdue or orphaned transactions that one store transaction of `transactions reap` ends."""

REAP_EVERY_NS = 1_000_000_000
"""A process looks for dead owners at its first write, then at most once in this long."""

ACTIVE_OWNER_MS = 60_000
"""An owner that used its transaction within this long is not aborted without --force."""

ABORTED_SEGMENT_TRANSACTIONS_MAX = 256
"""A segment of the aborted set is sealed at this many transactions (12 KiB)."""

RECEIVER_QUEUE_SIZE = 1000
"""Messages a consumer is handed in one store transaction, at the most."""

HELD_MESSAGES_MAX = 100_000
"""Key_Shared: messages passed over because their key is held; beyond it dispatch waits."""

KEYS_REMEMBERED_MAX = 1_000_000
"""Key_Shared with on-open skip: keys of open transactions that a consumer remembers; with more it holds back all."""

PASSED_OVER_KEPT = 1000
"""Open transactions that a waiting consumer passes over before it records that it did."""

NACK_DELAY_MS = 60_000
DISPATCH_BYTES_MAX = 8 * 1024 * 1024
PAGE_BYTES = 1024 * 1024
"""A read copies about this much out of one view before it hands anything out."""

PAGE_ENTRIES = 1024

SPLIT_KEYS = 50_000
"""Keys that are walked in one view to cut a table into parts."""

DISPATCH_SCAN_ENTRIES_MAX = 20_000
"""Entries that one dispatch looks at; aborted ones and markers cost a store transaction no more than this."""

PENDING_ENTRIES_MAX = 200_000
"""Entries with pending acknowledgements in one transaction."""

WAKE_S = 0.005
"""How often a waiting process looks whether the store has changed."""

DEATH_CHECK_S = 0.5
"""How often a waiting process looks for dead owners, due redeliveries and deadlines."""

TABLE_KEY_BYTES_MAX = 400
TABLE_VALUE_BYTES_MAX = 5 * 1024 * 1024
"""A key and a value of a table."""

TABLE_RETENTION_MS = 3600 * 1000
TABLE_RETENTION_MS_MIN = 1000
TABLE_RETENTION_MS_MAX = 10 * 366 * 86_400 * 1000
"""How far back versions are kept unless configured, and the least and most that can be."""

CLOCKS_DISAGREE_NS = 60 * 1_000_000_000
"""While wall clock and boot clock disagree by more than this, nothing is removed for its age."""

BUFFER_KEYS_MAX = 1000
BUFFER_BYTES_MAX = 4 * 1024 * 1024
"""What an attached transaction keeps in its process before it writes its intents."""

FINALIZE_INLINE_MAX = 64
"""Intents that are finalised with the decision itself; more are left to whoever meets them, and to gc."""

GC_STEP_RECORDS = 500
"""Keys, rows or outcomes that one store transaction of gc deals with; each is a handful of look-ups and changes."""

GC_STEP_BYTES = 4 * 1024 * 1024
"""Bytes of rows after which a store transaction of gc ends, however few they are."""

GC_LOOK_RECORDS = 2000
"""Records that gc looks at in one view, to find what the next store transaction deals with."""

OUTCOME_RETENTION_MS = 24 * 3600 * 1000
"""How long the outcome of a transaction is kept at least, when nothing names it any more."""

HOLDERS_SHOWN = 20
"""Open transactions that the statistics of a subscription name, the first of the topic; lists have them all."""

TABLE_HOLDERS_MAX = 20
"""Open transactions that the statistics of a table name; the others are counted."""

CONFLICTS_MAX = 1000
"""Conflicts that `tables history` keeps."""

TIMESTAMP_RESERVE_NS = 10 * 1_000_000_000
"""How far ahead timestamps are reserved, to be issued without a commit."""
