"""Fields of a topic: names, counts and limits in every report about topics."""

from __future__ import annotations

from txnctl.output.field import Help

NAMES = {
    "topic": Help("The topic's full name.", kind="id", heading=""),
    "name": Help("The same, short in the default namespace.", kind="id", heading="TOPIC"),
}
"""A topic in every report about topics."""

COUNTS = {
    "msg_count": Help("Messages stored; transaction markers are none.", heading="MESSAGES"),
    "marker_count": Help("Transaction markers stored.", heading=""),
    "storage_size": Help("Bytes stored.", kind="size", heading="SIZE"),
    "msg_in_counter": Help("Messages ever appended.", heading=""),
    "bytes_in_counter": Help("Bytes ever appended.", kind="size", heading=""),
    "first_position": Help("The first entry still stored; null in an empty topic.", heading=""),
    "max_read_position": Help("How far READ_COMMITTED reads.", rank=3),
    "last_confirmed_entry": Help("The last entry written, markers included.", heading="LAST ENTRY", rank=5),
    "topic_epoch": Help(
        "The epoch of the last exclusive producer; null if there was none.", heading="EPOCH", rank=6
    ),
    "ongoing_txn_count": Help("Open transactions with messages here.", heading="OPEN TXNS"),
    "uncommitted_messages": Help("Messages of open transactions.", heading="UNCOMMITTED"),
    "aborted_txn_count": Help("Aborted transactions with messages here.", heading=""),
    "aborted_messages": Help("Messages of aborted transactions.", heading=""),
    "last_publish_at_ms": Help("When the last message was published.", heading="LAST PUBLISH", rank=4),
}
"""What every report about a topic counts."""

CREATED = {"created_at_ms": Help("When the topic was created.", heading="CREATED")}

LIMITS = {
    "ledger_entries_max": Help("Entries at which a ledger is closed.", heading="LEDGER ENTRIES"),
    "ledger_bytes_max": Help("Bytes at which a ledger is closed.", kind="size", heading="LEDGER BYTES"),
    "ledger_age_max_ms": Help("Age at which a ledger is closed.", heading="LEDGER AGE"),
}

RETENTION = {
    "retention_time_ms": Help(
        "The age down to which acknowledged messages are kept; null for no limit.",
        kind="keptTime",
        heading="RETENTION TIME",
    ),
    "retention_bytes": Help(
        "The size down to which acknowledged messages are kept; null for no limit.",
        kind="keptSize",
        heading="RETENTION SIZE",
    ),
}

OTHER_LIMITS = {
    "retention_hard": Help(
        "What both do to messages that are not acknowledged: off (keep them), trim, or refuse producers.",
        heading="HARD",
    ),
    "ttl_ms": Help(
        "The age at which messages are acknowledged for every subscription; null for none.",
        kind="duration",
        heading="TTL",
    ),
    "expire_after_ms": Help(
        "The time without a consumer after which a subscription is deleted; null for none.",
        kind="duration",
        heading="EXPIRE AFTER",
    ),
}

LET_GO = {
    "lets_go": Help(
        "What the limits let go of now: ledgers, messages, bytes, messagesLost, messagesExpired, "
        "subscriptionsExpired, transactionsAborted, hasMore (there is more); null where nothing was set.",
        heading="",
    )
}

ENDED = {
    "lost": Help("What each subscription had not acknowledged: subscription, messages."),
    "expired": Help("What was acknowledged for its age: subscription, messages."),
    "subscriptions_expired": Help("Subscriptions without a consumer that were deleted."),
    "transactions_aborted": Help("Open transactions with a part in what goes, aborted first."),
}

TRIMMED = {
    "ledgers": Help("Ledgers removed from the front."),
    "messages": Help("Their messages."),
    "bytes": Help("Their bytes.", kind="size", heading="SIZE"),
}

FIRST_LEFT = {"first_position": Help("The first position that the topic has, or will have.")}

HELD_BY = {
    "held_by": Help(
        "The subscription, open transaction or compacted view that is furthest back; null if none holds a message."
    )
}

COMPACTED = {
    "threshold_bytes": Help(
        "Bytes behind the horizon from which on writers compact; null for never.",
        kind="size",
        heading="THRESHOLD",
    ),
    "tombstone_retention_ms": Help(
        "The time for which a tombstone stays at least.", heading="TOMBSTONES KEPT"
    ),
    "horizon": Help("The view has every key up to here; null before the first compaction."),
    "generation": Help("Of the view; a truncation begins the next one.", heading=""),
    "messages": Help("Messages of the view."),
    "bytes": Help("Bytes of the view.", kind="size", heading="SIZE"),
    "tombstones": Help("Tombstones among its messages."),
    "uncompacted_bytes": Help(
        "Bytes of the committed log behind the horizon.", kind="size", heading="BEHIND"
    ),
    "compacted_at_ms": Help("When the last step of compaction ran; null if none did.", heading="COMPACTED"),
}
"""The compaction of a topic, and its compacted view."""

COMPACTION = {
    "compaction": Help(
        "The compaction: thresholdBytes, tombstoneRetentionMs, horizon, generation, messages, bytes, tombstones, "
        "uncompactedBytes, compactedAt and -Ms; null for a topic that was never compacted.",
        heading="COMPACTION",
    )
}

AS_OF = {"as_of_at_ms": Help("The moment of which the report speaks.", heading="AS OF")}
