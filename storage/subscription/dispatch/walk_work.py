"""The work of one walk of dispatch under the writer gate, in units of about 10 us.

Only progress counts: an entry that the record of the walk passes for good, delivers, holds back, or moves to the
dead-letter topic. So a walk without work left has something to record, and the next walk begins behind it.
"""

from __future__ import annotations

from storage.limits import DISPATCH_WORK_MAX
from storage.topic.entry import Entry

_PASSED = 1
_SELECTED = 2
_CHANGED = 4
_MESSAGES_A_UNIT = 16
_BYTES_A_UNIT = 8192


class WalkWork:
    """The work of a walk.

    Attributes:
        left: the work left; none if it is not positive.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = DISPATCH_WORK_MAX

    def passed(self) -> None:
        """Count an entry that is acknowledged in passing, or a gap."""
        self.left -= _PASSED

    def selected(self, entry: Entry) -> None:
        """Count an entry that no record names, of which all messages are delivered."""
        self.left -= _SELECTED + entry.count // _MESSAGES_A_UNIT + entry.size // _BYTES_A_UNIT

    def changed(self, entry: Entry) -> None:
        """Count an entry of which messages are delivered or held back, and so unpacked."""
        self.left -= _CHANGED + entry.count // _MESSAGES_A_UNIT + entry.size // _BYTES_A_UNIT

    def retired(self, entry: Entry) -> None:
        """Count an entry of which messages are packed again for the dead-letter topic."""
        self.changed(entry)
        self.changed(entry)
