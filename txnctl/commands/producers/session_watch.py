"""`producers lead` checks the session while the command runs."""

from __future__ import annotations

from signal import SIGTERM

from storage.errors import NotFound, SessionNotFound, TxnctlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import Signals

    from storage.client.producer import Producer
    from storage.reports.producers import OwnershipRow
    from txnctl.cli.context import Context


class Watch:
    """Looks, and says so once when the topic is lost."""

    def __init__(self, context: Context, producer: Producer, command: str, *, tells: bool) -> None:
        """Args:
        tells: have the command told with SIGTERM.
        """
        self._context = context
        self._producer = producer
        self._command = command
        self._tells = tells
        self._is_over = False

    def look(self) -> Signals | None:
        """The signal for the command: SIGTERM, once, when the topic is lost."""
        if self._is_over:
            return None
        assert self._producer.session is not None, "an exclusive producer is connected"
        try:
            self._context.store.reports.show_session(self._producer.session)
        except SessionNotFound:
            self._is_over = True
            ends = f"; {self._command} is told to end" if self._tells else ""
            self._context.warn(f"{self._producer.topic} is lost: {self._why()}{ends}")
            return SIGTERM if self._tells else None
        except TxnctlError as error:
            self._is_over = True
            self._context.warn(
                f"the owner of {self._producer.topic} cannot be checked any more: {error.message}"
            )
        return None

    def _why(self) -> str:
        """The new owner of the topic, or the end of the session."""
        try:
            history = self._context.store.reports.ownership_history(self._producer.topic)
        except NotFound:
            return "the topic was deleted"
        rows: dict[int | None, OwnershipRow] = {row.topic_epoch: row for row in history}
        tenure = rows.get(self._producer.topic_epoch)
        if tenure is None:
            return "the topic was deleted and created again"
        after = rows.get(tenure.taken_over_by)
        if after is None:
            return f"the session was {tenure.ended_by}"
        process = after.owner.address
        if after.producer_name is None:
            return f"{process} fenced its producers, epoch {after.topic_epoch}"
        return (
            f"{after.producer_name} ({after.access_mode}, {process}) took it over, epoch {after.topic_epoch}"
        )
