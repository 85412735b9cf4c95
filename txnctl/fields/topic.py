"""Fields of a topic: names, counts and limits in every report about topics."""

from __future__ import annotations

from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

NAMES = (
    Field("topic", "id", "The topic's full name.", heading=""),
    Field("name", "id", "The same, short in the default namespace.", heading="TOPIC"),
)
"""A topic in every report about topics."""

COUNTS = (
    Field("msgCount", "integer", "Messages stored; transaction markers are none.", heading="MESSAGES"),
    Field("markerCount", "integer", "Transaction markers stored.", heading=""),
    Field("storageSize", "size", "Bytes stored.", heading="SIZE"),
    Field("msgInCounter", "integer", "Messages ever appended.", heading=""),
    Field("bytesInCounter", "size", "Bytes ever appended.", heading=""),
    Field("firstPosition", "position", "The first entry still stored; null in an empty topic.", heading=""),
    Field("maxReadPosition", "position", "How far READ_COMMITTED reads."),
    Field(
        "lastConfirmedEntry", "position", "The last entry written, markers included.", heading="LAST ENTRY"
    ),
    Field(
        "topicEpoch",
        "integer",
        "The epoch of the last exclusive producer; null if there was none.",
        heading="EPOCH",
    ),
    Field("ongoingTxnCount", "integer", "Open transactions with messages here.", heading="OPEN TXNS"),
    Field("uncommittedMessages", "integer", "Messages of open transactions.", heading="UNCOMMITTED"),
    Field("abortedTxnCount", "integer", "Aborted transactions with messages here.", heading=""),
    Field("abortedMessages", "integer", "Messages of aborted transactions.", heading=""),
    Field("lastPublishAt", "time", "When the last message was published.", heading="LAST PUBLISH"),
    Field("lastPublishMs", "timeMs", "The same as an integer.", heading=""),
)
"""What every report about a topic counts."""

CREATED = (
    Field("createdAt", "time", "When the topic was created.", heading="CREATED"),
    Field("createdMs", "timeMs", "The same as an integer.", heading=""),
)

LIMITS = (
    Field("ledgerEntriesMax", "integer", "Entries at which a ledger is closed.", heading="LEDGER ENTRIES"),
    Field("ledgerBytesMax", "size", "Bytes at which a ledger is closed.", heading="LEDGER BYTES"),
    Field("ledgerAgeMaxMs", "duration", "Age at which a ledger is closed.", heading="LEDGER AGE"),
)

AS_OF = (
    Field("asOfAt", "time", "The moment of which the report speaks.", heading="AS OF"),
    Field("asOfMs", "timeMs", "The same as an integer.", heading=""),
)
