"""txnctl's storage engine: topics, transactions, subscriptions and their isolation levels in one LMDB environment.

    from storage import Store, IsolationLevel, SubscriptionType

It knows nothing of the command line. Start reading at `store.py`; docs/ARCHITECTURE.md has the tour. Names are
imported when they are first asked for, so that a command which only opens a store loads no more than that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.consumer import Consumer
    from storage.errors import TxnctlError
    from storage.ledger.access import AccessMode
    from storage.message import Message
    from storage.message_batch import MessageBatch
    from storage.open_table import Row, Table
    from storage.position import EARLIEST, LATEST, LateMessageId, MessageId, Position
    from storage.producer import Producer
    from storage.reader import Blocked, Reader
    from storage.receipt import DUPLICATE, BatchReceipt
    from storage.store import Store
    from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
    from storage.transaction import Transaction
    from storage.txn_id import TxnID
    from storage.txn_options import CheckMode, Priority, TransactionIsolation
    from storage.txn_state import TransactionState

__all__ = [
    "DUPLICATE", "EARLIEST", "LATEST", "AccessMode", "BatchReceipt", "Blocked", "CheckMode", "Consumer",
    "IsolationLevel", "LateMessageId", "Message", "MessageBatch", "MessageId", "OnOpen", "Position", "Priority",
    "Producer", "Reader", "Row", "Store", "SubscriptionType", "Table", "Transaction", "TransactionIsolation",
    "TransactionState", "TxnID", "TxnctlError",
]  # fmt: skip

_HOMES = {
    "DUPLICATE": "receipt", "AccessMode": "ledger.access", "EARLIEST": "position", "LATEST": "position",
    "BatchReceipt": "receipt", "LateMessageId": "position",
    "Blocked": "reader", "Consumer": "consumer", "IsolationLevel": "subscription.isolation", "Message": "message",
    "MessageBatch": "message_batch",
    "MessageId": "position", "OnOpen": "subscription.isolation",
    "Position": "position", "Producer": "producer", "Reader": "reader", "Store": "store",
    "SubscriptionType": "subscription.isolation", "Transaction": "transaction", "TransactionState": "txn_state",
    "TxnID": "txn_id", "TxnctlError": "errors",
    "CheckMode": "txn_options", "Priority": "txn_options", "TransactionIsolation": "txn_options", "Row": "open_table",
    "Table": "open_table",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"storage.{home}"), name)
    globals()[name] = value
    return value
