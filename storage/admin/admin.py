"""What operators do, put together: `store.admin`."""

from __future__ import annotations

from storage.admin.acknowledgements import AcknowledgementChanges
from storage.admin.settings import StoreChanges
from storage.admin.subscriptions import SubscriptionChanges
from storage.admin.topics import TopicChanges


class Administration(TopicChanges, SubscriptionChanges, AcknowledgementChanges, StoreChanges):
    """Every method returns what it changed, or would change with `dry_run`."""
