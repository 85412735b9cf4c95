"""Delayed messages that `consume -s` does not show yet, noted on standard error at the end, with the next due time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Consumer
    from storage.errors import WaitTimeout
    from storage.process.clock import Clock
    from txnctl.cli.context import Context


class DelayedNote:
    """Note the delayed messages of a consumer's subscription."""

    def __init__(self, context: Context, topic: str, consumer: Consumer, clock: Clock) -> None:
        self._context = context
        self._topic = topic
        self._consumer = consumer
        self._clock = clock

    def at_end(self, error: WaitTimeout | None = None) -> None:
        """Note the messages, if there are any.

        Args:
            error: ends the command; the hint names the time of the next message.
        """
        delayed = self._consumer.delayed()
        if delayed is None:
            return
        from storage.values.timestamps import rfc3339
        from txnctl.output.human import duration, plural

        verb = "is" if delayed.messages == 1 else "are"
        self._context.note(
            f"{plural(delayed.messages, 'message')} of {self._topic} {verb} delayed, the next one until "
            f"{rfc3339(delayed.due_ms)}"
        )
        if error is not None:
            left = duration(max(1, delayed.due_ms - self._clock.wall_ms()))
            error.hint = f"The next message is due in {left}: wait longer, or with -f."
