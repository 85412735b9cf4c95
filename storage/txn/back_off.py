"""Back-off: the wait before a transaction that lost a conflict is tried again, and the priority of the next try. Pure.

A transaction that is tried again at once reads the contended key while the winner of the last conflict is at work, and
aborts the winner in turn: K2-3SI never waits, so two such jobs lose to each other for ever. The wait is therefore
several times as long as a try takes, so that a winner commits many times before the next interruption, and is drawn at
random, so that two losers part.
"""

from __future__ import annotations

from storage.limits import BACK_OFF_CAP_S, BACK_OFF_TRIES, BACK_OFF_TRIES_MIN, BACK_OFF_TRY_MIN_S
from storage.txn.options import Priority

_RISING = tuple(reversed(Priority))


class BackOff:
    """The losses of one piece of work so far.

    Attributes:
        losses: tries that lost a conflict.
        longest_s: the longest of the lost tries, in seconds. A try that loses early says nothing about a winner's time.
    """

    __slots__ = ("longest_s", "losses")

    def __init__(self) -> None:
        self.losses = 0
        self.longest_s = BACK_OFF_TRY_MIN_S

    def note_loss(self, lasted_s: float) -> None:
        """Count a try that lost a conflict after so many seconds."""
        self.losses += 1
        self.longest_s = max(self.longest_s, lasted_s)

    def wait_s(self, share: float) -> float:
        """Seconds until the next try: a share, drawn from 0 to 1, of a span that doubles with each loss.

        The span is 8 times the longest try at first, at most 10 s, or 4 times the longest try if that is more: for a
        try of 50 ms 0.4 s, 0.8 s, 1.6 s, up to 10 s; for a try of 1 minute 4 minutes.
        """
        doubled_s = BACK_OFF_TRIES * self.longest_s * (1 << min(self.losses - 1, 20))
        return share * min(doubled_s, max(BACK_OFF_CAP_S, BACK_OFF_TRIES_MIN * self.longest_s))

    def raised(self, first: Priority) -> Priority:
        """The priority of the next try: the first one, raised by a rank for each loss."""
        return _RISING[min(_RISING.index(first) + self.losses, len(_RISING) - 1)]
