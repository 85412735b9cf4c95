"""An open subscription: record, cursor, acknowledgements and deliveries within one view or batch, in one value.

Made over a view, an open subscription is for reading only. Made over a batch, the cursor is shared by everything that
opens the same subscription in the batch, and the batch writes the cursor when the batch finishes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from storage.disk.view import ReadView
from storage.subscription import cursor as cursors
from storage.subscription.acks import Acks
from storage.subscription.delayed import Delayed
from storage.subscription.deliveries import Deliveries
from storage.subscription.subscription import Subscription

V = TypeVar("V", bound=ReadView, covariant=True)


class OpenSubscription(Generic[V]):
    """See the module.

    Attributes:
        view: the view, or the batch.
        acks: the acknowledged messages ahead of markDeletePosition.
        deliveries: the messages that were delivered or held back.
        delayed: the messages passed before their delivery time.
    """

    __slots__ = (
        "acks",
        "cursor",
        "delayed",
        "deliveries",
        "subscription",
        "subscription_id",
        "topic_id",
        "view",
    )

    def __init__(self, view: V, subscription: Subscription) -> None:
        self.view = view
        self.subscription = subscription
        self.subscription_id = subscription.subscription_id
        self.topic_id = subscription.topic_id
        self.cursor = cursors.load(view, self.subscription_id)
        self.acks = Acks(view, self.topic_id, self.subscription_id, self.cursor)
        self.deliveries = Deliveries(view, self.subscription_id, self.cursor)
        self.delayed = Delayed(view, self.subscription_id, self.cursor)
