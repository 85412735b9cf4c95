"""Messages hidden from `consume` by an open transaction, noted on standard error: once during the wait, and at the
end.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.client.blocker import Blocked
    from txnctl.cli.context import Context
    from txnctl.commands.consume.stop_condition import Patience

_SETTLED_S = 1.5
"""A follower is told when nothing has come for so long: most transactions end earlier."""


class Hidden:
    """Note the blocker that `blocked_by` returns."""

    def __init__(self, context: Context, topic: str, blocked_by: Callable[[], Blocked | None]) -> None:
        self._context = context
        self._topic = topic
        self._blocked_by = blocked_by
        self._told = ""

    def at_end(self) -> None:
        """Reading has come to the end of the visible messages."""
        self._say(self._blocked_by(), f"stopped before the end of {self._topic}")

    def while_waiting(self, patience: Patience) -> None:
        """Reading waits for more."""
        if patience.idle_s < _SETTLED_S:
            return
        blocked = self._blocked_by()
        if blocked is not None and blocked.messages and str(blocked.txn_id) != self._told:
            self._told = str(blocked.txn_id)
            self._say(blocked, f"standing still on {self._topic}")

    def _say(self, blocked: Blocked | None, how: str) -> None:
        if blocked is None or not (blocked.messages or blocked.uncommitted):
            return
        from txnctl.output.human import plural
        from txnctl.output.shell import line

        transaction = f"open transaction {blocked.txn_id}"
        if blocked.messages:
            verb = "waits" if blocked.messages == 1 else "wait"
            what = f"{plural(blocked.messages, 'committed message')} {verb} behind {transaction}"
            if blocked.uncommitted:
                what += f", with {blocked.uncommitted:,} uncommitted"
        else:
            what = (
                f"{plural(blocked.uncommitted, 'uncommitted message')} not shown, the first of {transaction}"
            )
        self._context.note(f"{how}: {what}; see `{line('transactions explain', blocked.txn_id)}`")
