"""Audited changes by operators, as `store.admin`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from storage.engine import Engine

if TYPE_CHECKING:
    from storage.admin.acknowledgements import AcknowledgementAdmin
    from storage.admin.producers import ProducerAdmin
    from storage.admin.settings import SettingsAdmin
    from storage.admin.subscriptions import SubscriptionAdmin
    from storage.admin.tables import TableAdmin
    from storage.admin.topics import TopicAdmin
    from storage.admin.transactions import TransactionAdmin


class Admin:
    """The changes by object. Every method returns the effects, with `dry_run` those it would have.

    Each part is loaded on use: a command needs one of them.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @cached_property
    def topics(self) -> TopicAdmin:
        from storage.admin.topics import TopicAdmin

        return TopicAdmin(self._engine)

    @cached_property
    def producers(self) -> ProducerAdmin:
        from storage.admin.producers import ProducerAdmin

        return ProducerAdmin(self._engine)

    @cached_property
    def subscriptions(self) -> SubscriptionAdmin:
        from storage.admin.subscriptions import SubscriptionAdmin

        return SubscriptionAdmin(self._engine)

    @cached_property
    def acknowledgements(self) -> AcknowledgementAdmin:
        from storage.admin.acknowledgements import AcknowledgementAdmin

        return AcknowledgementAdmin(self._engine)

    @cached_property
    def tables(self) -> TableAdmin:
        from storage.admin.tables import TableAdmin

        return TableAdmin(self._engine)

    @cached_property
    def transactions(self) -> TransactionAdmin:
        from storage.admin.transactions import TransactionAdmin

        return TransactionAdmin(self._engine)

    @cached_property
    def settings(self) -> SettingsAdmin:
        from storage.admin.settings import SettingsAdmin

        return SettingsAdmin(self._engine)
