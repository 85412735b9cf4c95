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
    from storage.position import EARLIEST, LATEST, MessageId, Position
    from storage.producer import DUPLICATE, BatchReceipt, Producer
    from storage.reader import Blocked, Reader
    from storage.store import Store
    from storage.subscription.isolation import IsolationLevel, SubscriptionType
    from storage.transaction import Transaction
    from storage.txn_id import TxnID
    from storage.txn_state import TransactionState

__all__ = [
    "DUPLICATE",
    "EARLIEST",
    "LATEST",
    "AccessMode",
    "BatchReceipt",
    "Blocked",
    "Consumer",
    "IsolationLevel",
    "Message",
    "MessageBatch",
    "MessageId",
    "Position",
    "Producer",
    "Reader",
    "Store",
    "SubscriptionType",
    "Transaction",
    "TransactionState",
    "TxnID",
    "TxnctlError",
]  # fmt: skip

_HOMES = {
    "DUPLICATE": "producer", "AccessMode": "ledger.access", "EARLIEST": "position", "LATEST": "position",
    "BatchReceipt": "producer",
    "Blocked": "reader", "Consumer": "consumer", "IsolationLevel": "subscription.isolation", "Message": "message",
    "MessageBatch": "message_batch",
    "MessageId": "position", "Position": "position", "Producer": "producer", "Reader": "reader", "Store": "store",
    "SubscriptionType": "subscription.isolation", "Transaction": "transaction", "TransactionState": "txn_state",
    "TxnID": "txn_id", "TxnctlError": "errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"storage.{home}"), name)
    globals()[name] = value
    return value
