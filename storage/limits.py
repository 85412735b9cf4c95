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
"""Audit records kept: of changes by operators, and of expired transactions."""

ENTRY_BYTES_TARGET = 256 * 1024
"""A batch is split into entries of about this size; a larger message becomes an entry of its own."""

ENTRY_MESSAGES_MAX = 10_000
"""Messages in one entry."""

WRITE_BYTES_TARGET = 8 * 1024 * 1024
"""A bulk write commits when it has appended this much, so that no store transaction exceeds 16 MB."""

REDELIVERIES_MAX = 1_000_000
"""Upper bound of the number of redeliveries after which a message goes to the dead-letter topic."""

REDRIVE_STEP_MESSAGES = 1000
"""Dead letters after which a store transaction of redrive ends."""

SESSION_LEASE_MS = 60_000
SESSION_LEASE_MS_MAX = 24 * 3600 * 1000
"""Lifetime of an unused session of the shell: default and upper bound."""

OWNERS_KEPT = 1000
"""Owners of a topic in its history."""

MESSAGE_OVERHEAD_BYTES = 32
"""Memory of a buffered message beside its own bytes."""

LEDGER_ENTRIES_MAX = 50_000
LEDGER_BYTES_MAX = 256 * 1024 * 1024
LEDGER_AGE_MAX_MS = 24 * 3600 * 1000
"""Defaults for rolling over a ledger, which happens at the first bound reached."""

DELAY_S_MAX = 36_500 * 86_400
"""Longest delay of a delivery or redelivery: 100 years, as far as an option of the command line goes."""

KEY_BYTES_MAX = 511
"""LMDB's bound for keys."""

READERS_MAX = 512
"""Slots of LMDB's reader table: processes and threads that read at once."""

MAP_BYTES_WANTED = 1 << 40
"""Address space mapped at open. The file is sparse, so the size costs nothing until the store outgrows it."""

MAP_BYTES_FALLBACK = 1 << 30
"""Address space of a process with a limit (RLIMIT_AS); the map then grows by doubling."""

MAP_BYTES_SPARE = 1 << 26
"""Minimum room for growth with which a store is opened."""

LOCK_TIMEOUT_S = 5.0
"""Default wait for the writer gate."""

GATE_MIN_S = 0.1
"""Shortest wait for the writer gate by a call with a timeout of its own: some ten turns of eight writers."""

LOCK_NOTE_S = 1.0
"""Wait after which a waiting process reports the holder of the gate."""

TRANSACTION_TIMEOUT_MS = 10 * 60 * 1000
TRANSACTION_TIMEOUT_MS_MAX = 24 * 3600 * 1000

RETRIES = 20
"""Default of further tries of `run_transaction`, after conflicts that were lost."""

BACK_OFF_TRIES = 8
"""Span of the wait after the first lost conflict, in lengths of a try; the span doubles with each further loss."""

BACK_OFF_CAP_S = 10.0
BACK_OFF_TRIES_MIN = 4
"""Upper bound of that span in seconds, and in lengths of a try where that is more."""

BACK_OFF_TRY_MIN_S = 0.005
"""Shortest length of a try that a wait is reckoned from: about one durable commit."""

REAP_PER_WRITE_MAX = 4
"""Overdue or orphaned transactions that one write ends in passing."""

REAP_STEP_MAX = 200
"""Overdue or orphaned transactions that one store transaction of `transactions reap` ends."""

REAP_EVERY_NS = 1_000_000_000
"""Interval at which a writing process looks for dead owners, from its first write on."""

LEASES_LOOKED_AT = 32
"""Leases without transactions that such a look asks for, in turn; of dead processes it removes the records."""

ACTIVE_OWNER_MS = 60_000
"""Age of the last use up to which a transaction is aborted only with --force."""

QUIET_CONSUMER_MS = 60_000
"""Time from which a consumer that holds messages and acknowledges none is reported."""

KEY_ENTRIES_MAX = 1000
"""Entries behind markDeletePosition that a report reads to tell the keys of the messages there."""

PEEK_KEY_ENTRIES_MAX = 100_000
"""Entries that a look for the messages of one key reads."""

ABORTED_SEGMENT_TRANSACTIONS_MAX = 256
"""A segment of the aborted set is sealed at this many transactions (12 KiB)."""

RECEIVER_QUEUE_SIZE = 1000
"""Messages delivered to a consumer in one store transaction, at most."""

LEFT_TO_OTHERS_MAX = 256
"""Messages of free keys that one dispatch of a Key_Shared subscription leaves to the other consumers."""

HELD_MESSAGES_MAX = 100_000
"""Key_Shared: messages skipped because of a blocked key, beyond which dispatch waits."""

FREE_PLACES_MAX = 64
"""Records with free messages whose places a consumer remembers; with more, a dispatch finds some soon."""

DELAYED_RECORDS_MAX = 2000
"""Due times of delayed messages that one dispatch notes, each a record of its own."""

DUE_TOGETHER_MAX = 128
"""Messages due at once on Key_Shared that one dispatch examines, or as many as it delivers; more are held first."""

KEYS_REMEMBERED_MAX = 1_000_000
"""Key_Shared with on-open skip: keys of open transactions in memory, beyond which a consumer delivers nothing."""

PASSED_OVER_KEPT = 1000
"""Open transactions that a waiting consumer skips before recording the skip."""

NACK_DELAY_MS = 60_000
DISPATCH_BYTES_MAX = 8 * 1024 * 1024
PAGE_BYTES = 1024 * 1024
"""Bytes that a read copies out of one view at a time."""

PAGE_ENTRIES = 1024

SPLIT_KEYS = 50_000
"""Keys walked in one view to cut a table into parts."""

DISPATCH_SCAN_ENTRIES_MAX = 8_000
"""Entries that one dispatch changes, aborted entries and markers included."""

DISPATCH_WORK_MAX = 4_000
"""Work of one dispatch inside the writer gate, in units of about 10 us (`subscription/dispatch/walk_work.py`)."""

SKIP_STEP_ENTRIES_MAX = 2000
"""Entries that one step of `skip` or `clear-backlog` examines; 32 messages of one count as a further entry."""

SPAN_FATES_MAX = 64
"""Fates (holder, deliveries so far, time due) of the messages of one span; with more, an entry has its own record."""

PENDING_ENTRIES_MAX = 200_000
"""Entries with pending acknowledgements in one transaction."""

WAKE_S = 0.005
"""Interval at which a waiting process looks for a commit where no wake page can be mapped."""

WAKE_MAX_S = 0.05
"""Longest sleep of a process that waits for a commit: a commit that woke nobody is seen that late."""

DEATH_CHECK_S = 0.5
"""Interval at which a waiting process looks for dead owners, due redeliveries and deadlines."""

CONSUMERS_LOOKED_AT = 8
"""Consumers of a subscription that one dispatch looks at, in turn, for dead ones."""

TABLE_KEY_BYTES_MAX = 400
TABLE_VALUE_BYTES_MAX = 5 * 1024 * 1024
"""A key and a value of a table."""

TABLE_RETENTION_MS = 3600 * 1000
TABLE_RETENTION_MS_MIN = 1000
TABLE_RETENTION_MS_MAX = 10 * 366 * 86_400 * 1000
"""Age up to which versions are kept: default, lower and upper bound."""

RETENTION_MS_MAX = 100 * 366 * 86_400 * 1000
RETENTION_BYTES_MAX = 1 << 60
"""Upper bounds of the limits down to which acknowledged messages are kept."""

SEQUENCE_RETENTION_MS = 7 * 86_400 * 1000
SEQUENCE_RETENTION_MS_MIN = 60 * 1000
SEQUENCE_RETENTION_MS_MAX = RETENTION_MS_MAX
"""Time for which sequence ids of trimmed messages are kept after their last use: default, lower and upper bound."""

PART_SEQUENCES_MAX = 64
"""Ranges of sequence ids of one producer name that a transaction notes apart for each topic."""

SEQUENCES_LOOKED_AT = 200
"""Ranges of sequence ids that a writing process looks at on its way, each time that it looks at topics."""

FORMER_TOPICS_RETENTION_MS = 30 * 86_400 * 1000
"""Time for which the name of a deleted topic keeps a record of its own."""

LIFETIME_MS_MIN = 1000
"""Lower bound of a time to live, and of the time after which a subscription without a consumer goes."""

FORCED_STEP_ENTRIES = 2000
"""Entries that one store transaction acknowledges for the sake of a limit."""

LOST_RUNS_STEP = 5000
"""Runs of a transaction that a subscription loses, and entries of batches in them, that one store transaction reads."""

FORECAST_STEPS_MAX = 10
"""Such steps after which the answer to a new limit counts no further."""

ENTRIES_OF_A_SUBSCRIPTION = 8
"""Entries that one subscription more costs such a store transaction."""

FORCED_STEP_SUBSCRIPTIONS = 256
"""Subscriptions of which one store transaction acknowledges messages for the sake of a limit."""

EXPIRY_SUBSCRIPTIONS = 256
"""Subscriptions of a topic that one store transaction looks at, whether they have been without a consumer for long."""

FORCED_STEP_TRANSACTIONS = 4
"""Open transactions that one store transaction aborts for a ledger that goes."""

MARKS_RAISED_MAX = 1000
"""Bounds of the index of subscriptions that one store transaction raises before it trims."""

HARD_LEDGERS = 8
"""A hard size limit closes the open ledger at this fraction of the limit, so that ledgers can go one by one."""

EXPIRED_NOTED_MS = 3600 * 1000
"""Interval at which the audit trail notes what writes acknowledged for its age."""

PURGE_STEP_RECORDS = 5_000
"""Records of a deleted topic or subscription that one store transaction removes."""

FORGOTTEN_MS = 7 * 24 * 3600 * 1000
"""Time without a consumer after which a subscription that keeps messages is reported as forgotten."""

TRIM_STEP_ENTRIES = 1000
"""Entries of trimmed ledgers that one store transaction removes."""

TRIM_STEP_LEDGERS = 100
"""Ledgers that one store transaction trims from a topic."""

TRIM_TOPICS_LOOKED_AT = 4
"""Topics that a writing process looks at on its way, each time that it looks for dead owners."""

TOMBSTONE_RETENTION_MS = 24 * 3600 * 1000
"""Time for which a compacted view keeps a tombstone at least, unless the topic has a time of its own."""

COMPACTION_STEP_MESSAGES = 200
COMPACTION_STEP_BYTES = 512 * 1024
"""Messages that one step of compaction writes, about, and bytes of the log that it reads."""

COMPACTION_ON_THE_WAY_NS = 5_000_000
"""Time after which compaction on the way of a write leaves the rest to the next write."""

CLOCKS_DISAGREE_NS = 60 * 1_000_000_000
"""Difference of wall clock and boot clock above which nothing is removed for its age."""

BUFFER_KEYS_MAX = 1000
BUFFER_BYTES_MAX = 4 * 1024 * 1024
"""Buffer of an attached transaction, beyond which its intents are written."""

GROUP_ENDS_MAX = 1000
GROUP_BYTES_MAX = WRITE_BYTES_TARGET
"""Queue of a group, beyond which it is flushed on the way: ends, and bytes of their messages and puts."""

GROUP_HOLD_NS = 50_000_000
"""Time after which a store transaction of a group takes no further end; the rest comes in the next one."""

ASYNC_MESSAGES_MAX = 20_000
ASYNC_BYTES_MAX = 2 * WRITE_BYTES_TARGET
"""Messages of `send_async` that a producer keeps unstored, and their bytes, beyond which the next call waits."""

FINALIZE_INLINE_MAX = 64
"""Intents finalised with the decision itself; later readers, writers and gc finalise the rest."""

GC_STEP_RECORDS = 500
"""Keys, rows or outcomes that one store transaction of gc handles."""

GC_STEP_BYTES = 4 * 1024 * 1024
"""Bytes of rows after which a store transaction of gc ends."""

GC_LOOK_RECORDS = 2000
"""Records that gc reads in one view to find work for the next store transaction."""

OUTCOME_RETENTION_MS = 24 * 3600 * 1000
"""Minimum time for which the outcome of a transaction is kept after the last record that names it."""

TOGETHER_ENTRIES_MAX = 10_000
"""Entries by which a piece of a topic grows at most so that it cuts no transaction."""

HOLDERS_SHOWN = 20
"""Open transactions named in the statistics of a subscription; lists name all."""

TABLE_HOLDERS_MAX = 20
"""Open transactions named in the statistics of a table; the rest are counted."""

CONFLICTS_MAX = 1000
"""Conflicts that `tables history` keeps."""

RECENT_ENDS_MS = 5 * 60 * 1000
RECENT_ENDS_MAX = 1000
"""Ended transactions that the abort rate of `check` looks at: how old, and how many."""

OLDEST_VISIBLE_STEPS = 1000
"""Entries to pass in search of the oldest visible message of a subscription."""

LIVELOCK_LOSSES_MIN = 10
"""Lost conflicts over one key from which on a livelock is looked for."""

LIVELOCK_RATIO = 4
"""Lost conflicts over one key for each commit of the key, from which on a livelock is reported."""

LIVELOCK_WINDOW_MS = 3600 * 1000
LIVELOCK_QUIET_MS = 60_000
"""Age of the conflicts that count, and age of the last one from which on a livelock is over."""

FORMER_TABLES = 1000
"""Deleted tables whose versions are told from those of a later table of the name."""

TRANSACTION_IDS_SKIPPED = 1_000_000_000
"""Ids that a new incarnation leaves out, as the one before may have given them out after the backup."""

TIMESTAMP_RESERVE_NS = 10 * 1_000_000_000
"""Span of timestamps reserved ahead, to be issued without a commit."""
