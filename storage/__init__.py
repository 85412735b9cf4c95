"""txnctl's storage engine: topics, transactions, subscriptions and their isolation levels in one LMDB environment.

    from storage import Store, IsolationLevel, SubscriptionType

The engine knows nothing of the command line. Start reading at `store.py`; docs/ARCHITECTURE.md has the tour. A name is
imported at first use, so that a command loads only the modules it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.client.blocker import Blocked
    from storage.client.consumer import Consumer
    from storage.client.delayed_messages import DelayedMessages
    from storage.client.group import EndGroup, RefusedEnd
    from storage.client.producer import Producer
    from storage.client.reader import Reader
    from storage.client.table import Table
    from storage.client.transaction import Transaction
    from storage.errors import TxnctlError
    from storage.store import Store
    from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
    from storage.table.visibility import Row
    from storage.topic.message import Message
    from storage.topic.message_batch import MessageBatch
    from storage.topic.producers.access_mode import AccessMode
    from storage.txn.options import CheckMode, Priority, TransactionIsolation
    from storage.values.position import EARLIEST, LATEST, LateMessageId, MessageId, Position
    from storage.values.receipt import DUPLICATE, BatchReceipt
    from storage.values.txn_id import TxnID
    from storage.values.txn_state import TransactionState

__all__ = [
    "DUPLICATE", "EARLIEST", "LATEST", "AccessMode", "BatchReceipt", "Blocked", "CheckMode", "Consumer",
    "DelayedMessages", "EndGroup", "IsolationLevel", "LateMessageId", "Message", "MessageBatch", "MessageId", "OnOpen",
    "Position", "Priority", "Producer", "Reader", "RefusedEnd", "Row", "Store", "SubscriptionType", "Table",
    "Transaction", "TransactionIsolation", "TransactionState", "TxnID", "TxnctlError",
]  # fmt: skip

_HOMES = {
    "DUPLICATE": "values.receipt",
    "AccessMode": "topic.producers.access_mode",
    "EARLIEST": "values.position",
    "LATEST": "values.position",
    "BatchReceipt": "values.receipt",
    "LateMessageId": "values.position",
    "Blocked": "client.blocker",
    "DelayedMessages": "client.delayed_messages",
    "Consumer": "client.consumer",
    "EndGroup": "client.group",
    "RefusedEnd": "client.group",
    "IsolationLevel": "subscription.isolation",
    "Message": "topic.message",
    "MessageBatch": "topic.message_batch",
    "MessageId": "values.position",
    "OnOpen": "subscription.isolation",
    "Position": "values.position",
    "Producer": "client.producer",
    "Reader": "client.reader",
    "Store": "store",
    "SubscriptionType": "subscription.isolation",
    "Transaction": "client.transaction",
    "TransactionState": "values.txn_state",
    "TxnID": "values.txn_id",
    "TxnctlError": "errors",
    "CheckMode": "txn.options",
    "Priority": "txn.options",
    "TransactionIsolation": "txn.options",
    "Row": "table.visibility",
    "Table": "client.table",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"storage.{home}"), name)
    globals()[name] = value
    return value
