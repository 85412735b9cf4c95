"""Whether the wall clock can be trusted with ages: whether it went on like the boot clock since their last agreement.

Nothing is removed for its age while both disagree by more than a minute, until an operator confirms the wall clock.
"""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.limits import CLOCKS_DISAGREE_NS


def clocks_agree(view: ReadView) -> bool:
    """Whether wall clock and boot clock have advanced equally since their last agreement."""
    offset_ns = view.clock.wall_ns() - view.now_ns
    return view.is_clock_running and abs(offset_ns - view.superblock.wall_offset_ns) <= CLOCKS_DISAGREE_NS


def trust_clocks(batch: WriteBatch) -> None:
    """Accept the present wall clock, which an operator has confirmed."""
    batch.superblock.wall_offset_ns = batch.clock.wall_ns() - batch.now_ns
    batch.superblock.changes += 1
