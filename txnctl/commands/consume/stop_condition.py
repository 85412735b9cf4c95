"""How long `consume` goes on: until the end, for a number of messages, or without end."""

from __future__ import annotations

from time import monotonic

from storage.errors import WaitTimeout
from storage.values.names import full_topic_name

_LOOK_S = 0.5
"""A waiting command looks this often whether anybody still reads its output."""


class Patience:
    """Counts messages, and the time in which none came.

    Attributes:
        left: messages that may still come.
        came: messages that have come.
        waits: whether to wait after the last visible message.
        is_endless: whether only a signal ends the command.
        is_stopped: whether a signal has ended the waiting.
    """

    __slots__ = (
        "_limit",
        "_since",
        "_timeout",
        "_topic",
        "came",
        "is_endless",
        "is_stopped",
        "left",
        "waits",
    )

    def __init__(self, topic: str, limit: int | None, follow: bool, timeout: float | None) -> None:
        self.left = (1 << 62) if limit is None else limit
        self.waits = follow or timeout is not None
        self.is_endless = follow and limit is None
        self.is_stopped = False
        self._topic = topic
        self._limit = limit
        self._timeout = timeout
        self.came = 0
        self._since = monotonic()

    def stop(self) -> None:
        """Nothing more is taken, or waited for."""
        self.is_stopped, self.waits, self.left = True, False, 0

    def count(self, messages: int) -> None:
        """So many have come."""
        self.left -= messages
        self.came += messages
        self._since = monotonic()

    @property
    def idle_s(self) -> float:
        """How long nothing has come."""
        return monotonic() - self._since

    def slice_s(self) -> float:
        """How long to wait before looking around; 0 without a wait, or after the time limit."""
        if not self.waits:
            return 0.0
        return _LOOK_S if self._timeout is None else max(0.0, min(_LOOK_S, self._timeout - self.idle_s))

    def is_over(self) -> bool:
        """Whether to end, now that nothing more is there.

        Raises:
            WaitTimeout: too few messages came in time.
        """
        if not self.waits:
            return True
        if self._timeout is None or self.idle_s < self._timeout:
            return False
        if self.came and self._limit is None:
            return True
        received = "no message" if not self.came else f"only {self.came:,} of {self._limit:,} messages"
        raise WaitTimeout(
            f"{received} came on {self._topic}: nothing more within {self._timeout:g} s",
            topic=full_topic_name(self._topic),
            messages=self.came,
        )
