"""The error for an isolation level typed beside a subscription: a subscription has a fixed level."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.at_time import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import MessageId, Position
    from storage.errors import InvalidValue
    from storage.values.position import Extreme

    Start = Position | MessageId | Extreme | AtTime


def own_level() -> InvalidValue:
    """The refusal of --from or --isolation-level beside -s."""
    return InvalidValue(
        "--from and --isolation-level are the subscription's own where -s names one",
        hint="Leave out both, or leave out -s to read from a different position or level.",
    )
