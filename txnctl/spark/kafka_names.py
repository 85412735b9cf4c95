"""Options of Spark's Kafka source that this source does not take, each with what to write instead. Pure."""

from __future__ import annotations

from typing import Final

from storage.errors import InvalidValue

_REFUSED: Final = {
    "assign": "A topic has no partitions to assign; topics (subscribe) names whole topics.",
    "groupidprefix": "Option subscription names where a stream keeps its position.",
    "minoffsetspertrigger": "A batch starts as soon as there is a message; set the interval of the query's trigger, "
    "and maxMessagesPerTrigger.",
    "maxtriggerdelay": "It goes with minOffsetsPerTrigger; set the interval of the query's trigger.",
    "startingoffsetsbytimestampstrategy": "Where no message is as new as startingTimestamp, the read starts at latest.",
    "maxrecordsperpartition": "minPartitions cuts a read into more partitions.",
    "kafkaconsumer.polltimeoutms": "There is no server to poll; leave it out.",
    "fetchoffset.numretries": "Positions come from the store, without a server; leave it out.",
    "fetchoffset.retryintervalms": "Positions come from the store, without a server; leave it out.",
}
"""Names in lower case, as Spark hands options over."""

_SETTINGS: Final = {
    "kafka.bootstrap.servers": "Option path names the store.",
    "kafka.group.id": "Option subscription names where a stream keeps its position.",
    "kafka.isolation.level": "Write isolationLevel: READ_COMMITTED (the default here) or READ_UNCOMMITTED.",
    "kafka.max.poll.records": "maxMessagesPerTrigger bounds a micro-batch.",
    "kafka.auto.offset.reset": "Write startingPosition: earliest or latest.",
    "kafka.enable.auto.commit": "Option subscription has its cursor follow the query; leave it out.",
    "kafka.transactional.id": "Every write is a transaction; writeId stores a batch write once.",
}

NAMES: Final = (
    "assign", "groupIdPrefix", "minOffsetsPerTrigger", "maxTriggerDelay", "startingOffsetsByTimestampStrategy",
    "maxRecordsPerPartition",
)  # fmt: skip
"""The refused names that docs/SPARK.md lists, beside `kafka.*`."""


def refuse_kafka(name: str) -> None:
    """Refuse an option of the Kafka source by what to write instead; pass over every other name.

    Args:
        name: in lower case.

    Raises:
        InvalidValue
    """
    hint = _REFUSED.get(name)
    if hint is None and name.startswith("kafka."):
        hint = _SETTINGS.get(name, "There is no server, and no client to configure; leave it out.")
    if hint is not None:
        raise InvalidValue(f"{name} is an option of Kafka's source, not of format txnctl", hint=hint)
