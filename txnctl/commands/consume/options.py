"""Options of `consume` as one value."""

from __future__ import annotations

from txnctl.cli.option_values import OptionValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import IsolationLevel, OnOpen, SubscriptionType, TxnID
    from storage.values.position import Start
    from txnctl.cli.at_time import AtTime


class ConsumeOptions(OptionValues):
    """The options of `txnctl consume`, as typed."""

    subscription: str | None
    subscription_type: SubscriptionType | None
    isolation_level: IsolationLevel | None
    on_open: OnOpen | None
    start: Start | AtTime | None
    end: Start | AtTime | None
    tail: int | None
    limit: int | None
    follow: bool
    timeout: float | None
    ack: str | None
    txn: TxnID | None
    run: str | None
    on_error: str | None
    retry_delay: float | None
    dead_letter_topic: str | None
    max_redeliver_count: int | None
    consumer_name: str | None
    read_compacted: bool
