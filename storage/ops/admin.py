"""What operators do, put together: `store.admin`."""

from __future__ import annotations

from storage.ops.acknowledgement_changes import AcknowledgementChanges
from storage.ops.store_changes import StoreChanges
from storage.ops.subscription_changes import SubscriptionChanges
from storage.ops.topic_changes import TopicChanges


class Administration(TopicChanges, SubscriptionChanges, AcknowledgementChanges, StoreChanges):
    """Every method returns what it changed, or would change with `dry_run`."""
