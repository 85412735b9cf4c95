"""The wait for the next commit of any process: followers, consumers, waiting producers and `transactions wait`.

A waiting process sleeps on a word of the wake page, which a commit changes if a process watches. The word is a hint:
LMDB tells which commit is the last one that views show. Each sleep is short enough that a commit that woke nobody, of a
process killed at that moment or of an earlier release, is seen soon. Without a page the wait looks every few
milliseconds. Deaths, deadlines and due messages are no commits: they bound the sleep by the caller's `until_ns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.limits import WAKE_MAX_S, WAKE_S
from storage.process.wake_page import COMMITS, WakePage

if TYPE_CHECKING:
    from storage.disk.lmdb.environment import LmdbEnvironment

_VISIBLE_S: Final = 0.001
"""Time until a commit that LMDB has counted is visible in a view."""

_REST_NS: Final = 1_000_000
"""Shortest time between two returns over commits: a busy store commits more often than a follower can look."""


class LmdbCommitWait:
    """The waits of one handle."""

    __slots__ = ("_environment", "_woken_ns")

    def __init__(self, environment: LmdbEnvironment) -> None:
        self._environment = environment
        self._woken_ns = -_REST_NS

    def wait(self, seen: int, until_ns: int) -> bool:
        """Sleep until views show a commit after `seen`, or the boot clock reaches `until_ns`; False for the latter.

        The wait holds no view. Removed files get no more commits, so the wait checks once a second that the store is
        still at its path.

        Args:
            seen: the commit number of the caller's last view.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        environment, clock = self._environment, self._environment.clock
        page = environment.locks.page
        rest_ns = min(self._woken_ns + _REST_NS, until_ns) - clock.boot_ns()
        if rest_ns > 0:
            clock.sleep(rest_ns / 1e9)
        is_announced = False
        while True:
            word = page.watch_commits() if not is_announced and page.map(makes=False) else None
            if is_announced or environment.visible_commit() != seen:
                self._woken_ns = clock.boot_ns()
                return True
            left_s = (until_ns - clock.boot_ns()) / 1e9
            if left_s <= 0:
                return False
            environment.look_in_place()
            is_announced = self._sleep(page, word, left_s, is_counted=environment.last_commit() != seen)

    def _sleep(self, page: WakePage, word: int | None, left_s: float, *, is_counted: bool) -> bool:
        """Sleep for a while; return whether a commit has been announced meanwhile, which views show."""
        clock = self._environment.clock
        if word is None:
            clock.sleep(min(_VISIBLE_S if is_counted else WAKE_S, left_s))
            return False
        # A commit that is counted and not yet shown wakes at once, or its process was killed.
        longest_s = _VISIBLE_S if is_counted else WAKE_MAX_S
        clock.sleep_on_word(page.word_address(COMMITS), word, min(longest_s, left_s))
        return page.words[COMMITS] != word
