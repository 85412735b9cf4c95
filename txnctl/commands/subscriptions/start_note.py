"""The note about a start beyond the end of a topic."""

from __future__ import annotations

from txnctl.cli.at_time import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.position import Position, Start
    from txnctl.cli.context import Context


def note_if_beyond(context: Context, topic: str, start: Start | AtTime, end: Position) -> None:
    """Say so if the position typed lies beyond the end: the subscription begins at the end, and misses nothing sent."""
    from storage.values.position import MessageId, Position

    is_beyond = isinstance(start, Position | MessageId) and (
        (start.ledger_id, start.entry_id - 1) > (end.ledger_id, end.entry_id)
    )
    if is_beyond:
        context.note(f"{start} lies beyond the end of {topic}, and is taken as the end: just after {end}")
