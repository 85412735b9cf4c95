"""A server's clock that jumps moves the store clock by no more than the machine's boot clock."""

from __future__ import annotations

from storage.disk.postgres.server_clock import ServerClock
from storage.disk.superblock import Superblock
from storage.disk.wall_clock import agree
from storage.process.clock import ManualClock

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


def batch(clock: ServerClock, block: Superblock, server_ns: int) -> int:
    """Begin a batch as the server's clock reads, and return the store clock."""
    clock.look(server_ns // 1000)
    recorded_ns = block.last_clock_ns
    block.begin_batch(clock, clock.wall_ns())
    return clock.keep_jump(block, recorded_ns)


def started() -> tuple[ManualClock, ServerClock, Superblock, int]:
    machine = ManualClock()
    clock = ServerClock(machine)
    server_ns = machine.wall_ns()
    clock.look(server_ns // 1000)
    block = Superblock(bytes(16), clock)
    batch(clock, block, server_ns)
    return machine, clock, block, server_ns


def test_the_store_clock_follows_the_server() -> None:
    """While both clocks agree."""
    machine, clock, block, server_ns = started()
    before = block.last_clock_ns
    machine.advance(10)
    assert batch(clock, block, server_ns + 10 * SECOND) == before + 10 * SECOND


def test_a_jump_ahead_is_kept_as_offset() -> None:
    """An hour of the server is a second of the store, for later batches too."""
    machine, clock, block, server_ns = started()
    before = block.last_clock_ns
    machine.advance(1)
    assert batch(clock, block, server_ns + HOUR) == before + SECOND
    machine.advance(1)
    assert batch(clock, block, server_ns + HOUR + SECOND) == before + 2 * SECOND


def test_a_view_shows_the_jump_that_no_batch_has_recorded() -> None:
    """Else a view would believe ages by a wall clock that has jumped, and garbage would be collected."""
    machine, clock, block, server_ns = started()
    machine.advance(1)
    clock.look((server_ns + SECOND + HOUR) // 1000)
    held = clock.hold_back(block)
    assert held.now_ns(clock) == block.last_clock_ns + SECOND
    assert not agree(held, clock, clock.wall_ns())
    assert agree(block, clock, clock.wall_ns()), "the stored superblock stays as it is"


def test_a_jump_is_kept_once_by_several_processes() -> None:
    """A second process that looks behind the first one's batch finds nothing left to keep."""
    machine, clock, block, server_ns = started()
    second = ServerClock(machine)
    batch(second, block, server_ns)
    before = block.last_clock_ns
    machine.advance(1)
    assert batch(clock, block, server_ns + HOUR) == before + SECOND
    assert batch(second, block, server_ns + HOUR) == before + SECOND


def test_a_jump_back_does_not_stop_the_store_clock() -> None:
    """The store clock goes on with the machine's."""
    machine, clock, block, server_ns = started()
    before = block.last_clock_ns
    machine.advance(5)
    assert batch(clock, block, server_ns - HOUR) == before + 5 * SECOND
    machine.advance(5)
    assert batch(clock, block, server_ns - HOUR + 5 * SECOND) == before + 10 * SECOND


def test_a_clock_that_others_have_moved_on_is_followed() -> None:
    """As far as a commit has recorded; a machine that slept has counted less."""
    machine, clock, block, server_ns = started()
    block.last_clock_ns += 60 * SECOND
    machine.advance(1)
    assert batch(clock, block, server_ns + 61 * SECOND) == block.last_clock_ns
    assert block.last_clock_ns >= 60 * SECOND


def test_waits_run_on_the_machines_boot_clock() -> None:
    """The server's clock decides of no wait."""
    machine, clock, _, server_ns = started()
    before = clock.boot_ns()
    clock.look((server_ns + HOUR) // 1000)
    assert clock.boot_ns() == before
    clock.sleep(2)
    assert clock.boot_ns() == before + 2 * SECOND
    assert machine.boot_ns() == clock.boot_ns()
