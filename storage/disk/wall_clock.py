"""Whether the wall clock can be trusted with ages: whether it went on like the boot clock since their last agreement.

Nothing is removed for its age while both disagree by more than a minute, until an operator confirms the wall clock.
"""

from __future__ import annotations

from storage.disk.superblock import Superblock
from storage.disk.view import ReadView, WriteBatch
from storage.limits import CLOCKS_DISAGREE_NS
from storage.process.clock import Clock


def clocks_agree(view: ReadView) -> bool:
    """Whether wall clock and boot clock have advanced equally since their last agreement."""
    return agree(view.superblock, view.clock, view.clock.wall_ns())


def agree(superblock: Superblock, clock: Clock, wall_ns: int) -> bool:
    """The same for a reading of the wall clock."""
    if not superblock.is_clock_running(clock):
        return False
    offset_ns = wall_ns - superblock.now_ns(clock)
    return abs(offset_ns - superblock.wall_offset_ns) <= CLOCKS_DISAGREE_NS


def trust_clocks(batch: WriteBatch) -> None:
    """Accept the present wall clock, which an operator has confirmed."""
    batch.superblock.wall_offset_ns = batch.clock.wall_ns() - batch.now_ns
    batch.superblock.changes += 1
