"""The note about a start that lies outside of a topic."""

from __future__ import annotations

from txnctl.cli.at_time import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.position import Position, Start
    from txnctl.cli.context import Context


def note_if_beyond(context: Context, topic: str, start: Start | AtTime, taken: Position) -> None:
    """Say so if the position typed lies beyond the end of a topic, or before the first position that it has.

    Args:
        taken: the position after which the subscription begins.
    """
    from storage.values.position import MessageId, Position

    if not isinstance(start, Position | MessageId):
        return
    asked = (start.ledger_id, max(start.entry_id, 0) - 1)
    if asked > taken:
        context.note(f"{start} lies beyond the end of {topic}, and is taken as the end: just after {taken}")
    elif start.ledger_id and asked < taken:  # 0:0 is before every topic, and means its begin
        context.note(
            f"{start} lies before the first position of {topic}, and is taken as that: just after {taken}"
        )
