"""txnctl's storage engine: topics, transactions, subscriptions and their isolation levels in one LMDB environment.

    from storage import Store, IsolationLevel, SubscriptionType

It knows nothing of the command line. Start reading at `store.py`; docs/ARCHITECTURE.md has the tour.
"""

from storage.consumer import Consumer
from storage.errors import TxnctlError
from storage.message import Message
from storage.position import EARLIEST, LATEST, MessageId, Position
from storage.producer import DUPLICATE, BatchReceipt, Producer
from storage.reader import Blocked, Reader
from storage.store import Store
from storage.subscription.isolation import IsolationLevel, SubscriptionType
from storage.transaction import Transaction
from storage.txn_id import TxnID
from storage.txn_state import TransactionState

__all__ = [
    "DUPLICATE", "EARLIEST", "LATEST", "BatchReceipt", "Blocked", "Consumer", "IsolationLevel", "Message", "MessageId",
    "Position", "Producer", "Reader", "Store", "SubscriptionType", "Transaction", "TransactionState", "TxnID",
    "TxnctlError",
]  # fmt: skip
