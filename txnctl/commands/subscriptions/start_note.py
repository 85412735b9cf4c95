"""The note about a start that lies outside of a topic."""

from __future__ import annotations

from txnctl.cli.at_time import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Store
    from storage.values.position import Position, Start
    from txnctl.cli.context import Context


def note_if_beyond(context: Context, topic: str, start: Start | AtTime, taken: Position) -> None:
    """Say so if the position typed lies beyond the end of a topic, or before the first position that it has.

    Args:
        taken: the position after which the subscription begins.
    """
    asked = _position_before(start)
    if asked is None:
        return
    if asked > taken:
        context.note(f"{start} lies beyond the end of {topic}, and is taken as the end: just after {taken}")
    elif asked.ledger_id and asked < taken:  # 0:0 is before every topic, and means its begin
        context.note(
            f"{start} lies before the first position of {topic}, and is taken as that: just after {taken}"
        )


def note_if_to_come(context: Context, store: Store, topic: str, start: Start | AtTime) -> None:
    """Say so if the position typed lies beyond the end of a topic: a reader shows nothing before that position."""
    asked = _position_before(start)
    end = None if asked is None else store.reports.topic_extents([topic])[0].last_confirmed
    if asked is not None and end is not None and asked > end:
        context.note(
            f"{start} lies beyond the end of {topic}, {end}: no message is there yet, and none before it is shown"
        )


def _position_before(start: Start | AtTime) -> Position | None:
    """The position just before a start that was typed as a position or an id; None for words and times."""
    from storage.values.position import MessageId, Position

    if not isinstance(start, Position | MessageId):
        return None
    return Position(start.ledger_id, max(start.entry_id, 0) - 1)
