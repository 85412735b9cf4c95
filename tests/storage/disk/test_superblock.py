"""The store's own head: the oracle and the store clock."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.disk.superblock import Superblock
from storage.process.clock import ManualClock

STORE_ID = b"s" * 16


class TestOracle:
    """Timestamps only order."""

    @given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=30))
    def test_timestamps_grow_whatever_the_clock_does(self, jumps_ns: list[int]) -> None:
        """max(clock, last + 1): a clock that stands or jumps back never repeats one (invariant 16)."""
        clock = ManualClock()
        head, last = Superblock(STORE_ID, clock), 0
        for jump_ns in jumps_ns:
            clock.wall_now_ns += jump_ns
            issued = head.issue_timestamp(clock.wall_ns())
            assert issued == max(clock.wall_now_ns, last + 1)
            last = issued

    def test_the_last_one_is_kept(self) -> None:
        """A head read back goes on where it stood."""
        clock = ManualClock()
        head = Superblock(STORE_ID, clock)
        issued = head.issue_timestamp(clock.wall_ns())
        clock.wall_now_ns = 0
        assert Superblock.decode(memoryview(head.encode())).issue_timestamp(clock.wall_ns()) == issued + 1


class TestStoreClock:
    """Nanoseconds that grow while the machine runs, over reboots."""

    @given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**15)), max_size=10))
    def test_it_goes_on_after_a_reboot_where_it_was_last_recorded(self, boots: list[tuple[int, int]]) -> None:
        """In each boot it counts what passes there, and nothing of the boot clock's own beginning."""
        clock = ManualClock()
        head, expected = Superblock(STORE_ID, clock), 0
        for number, (passed_ns, began_ns) in enumerate(boots):
            clock.boot, clock.boot_now_ns = b"boot-%011d" % number, began_ns
            assert head.now_ns(clock) == expected, "a boot that has not written yet stands still"
            assert head.begin_batch(clock, clock.wall_ns())
            assert not head.begin_batch(clock, clock.wall_ns())
            clock.boot_now_ns += passed_ns
            expected += passed_ns
            assert head.now_ns(clock) == expected
            head.last_clock_ns = head.now_ns(clock)
            head = Superblock.decode(memoryview(head.encode()))

    def test_it_never_goes_back(self) -> None:
        """A boot clock that is wrong cannot move the store clock behind what was recorded."""
        clock = ManualClock()
        head = Superblock(STORE_ID, clock)
        head.last_clock_ns = 10**12
        assert head.now_ns(clock) == 10**12
