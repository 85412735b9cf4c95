"""The wake page: words in the lock file that processes sleep on, mapped by every process that waits or writes.

Everything in the page is a hint. The kernel lock decides which process passes the writer gate, and LMDB tells which
commit is the last one: so a page of zeros, a stale one after a reboot, a copied or a damaged one, and no page at all
cost time and nothing else. Each sleep on a word has a timeout, and a change of a word needs no atomic operation.

The file is mapped through a descriptor of its own. A map keeps its open file alive, and with it the locks: a child that
was forked would hold the locks of its dead parent.

Words of 32 bits in the machine's byte order, by their number (bytes: docs/FORMAT.md):

    QUEUED    not 0 while a process may be in the queue of the gate (gate_queue.py)
    WATCHED   not 0 while a process may be waiting for a commit (`announce_commit`)
    COMMITS   changes with a commit while WATCHED is set
    PASSES    changes when a waiting process has passed the gate
    HIGH      slots of the queue in use are below this number

Behind the queue stand the last *rounds*: when a process last looked at all consumers of a subscription for dead ones,
so that the consumers that wait share one look.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

from storage.limits import DEATH_CHECK_S
from storage.process import futex

QUEUED: Final = 32
WATCHED: Final = 33
COMMITS: Final = 34
PASSES: Final = 35
HIGH: Final = 36
LAST_TICKET: Final = 19
"""The last ticket of the queue, among the words of 64 bits."""

SLOTS: Final = 256
SLOT_WORD: Final = 64
"""The first of the words that waiting threads sleep on, one a slot."""
SLOT_TICKET: Final = 160
"""The first of the tickets, among the words of 64 bits, one a slot; 0 where the slot is not in the queue."""

_ROUND: Final = SLOT_TICKET + SLOTS
"""The first of the rounds, among the words of 64 bits."""
_ROUNDS: Final = 96
_ROUND_MS: Final = int(DEATH_CHECK_S * 1000)
_TIME_BITS: Final = 40

_MASK: Final = 0xFFFFFFFF
_BYTES: Final = 4096
_WORD_BYTES: Final = 4
_BLOCK_BYTES: Final = 512
"""The unit of `st_blocks`, on every file system."""
_SIGNATURE: Final = slice(64, 80)

_NOT_MAPPED: Final = tuple(int(number == QUEUED) for number in range(64))
"""Stands for the words until the first wait or write, which then takes the slow way."""
_NO_PAGE: Final = (0,) * 64


class WakePage:
    """The page of one store in one process.

    Attributes:
        words: the words of 32 bits; a tuple while the page is not mapped.
        tickets: the words of 64 bits; None while the page is not mapped.
        data: the mapped bytes; None while the page is not mapped.
    """

    __slots__ = ("_address", "_path", "data", "tickets", "words")

    def __init__(self, path: str) -> None:
        self._path = path
        self._forget(_NOT_MAPPED)

    def _forget(self, words: tuple[int, ...]) -> None:
        self.words: memoryview[int] | tuple[int, ...] = words
        self.tickets: memoryview[int] | None = None
        self.data: mmap.mmap | None = None
        self._address = 0

    @property
    def is_mapped(self) -> bool:
        return self.data is not None

    def map(self, *, makes: bool) -> bool:
        """Map the page if that is possible; return whether the page is mapped.

        Args:
            makes: make the lock file as long as the page. Without that, a file of an earlier release that no process
                has written to since is not mapped.
        """
        if self.data is not None:
            return True
        if self.words is _NO_PAGE or not futex.is_available():
            return False
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            self._forget(_NO_PAGE)  # A read-only file system, or no permission.
            return False
        try:
            status = os.fstat(descriptor)
            if min(status.st_size, status.st_blocks * _BLOCK_BYTES) < _BYTES:
                if not makes:
                    return False
                # A write through memory for which a full disk has no page would kill the process.
                os.posix_fallocate(descriptor, 0, _BYTES)
            self._adopt(mmap.mmap(descriptor, _BYTES))
        except (OSError, ValueError):
            self._forget(_NO_PAGE)
            return False
        finally:
            os.close(descriptor)
        return True

    def _adopt(self, data: mmap.mmap) -> None:
        address = futex.address_of(data)
        self.words, self.tickets = memoryview(data).cast("I"), memoryview(data).cast("Q")
        self._address, self.data = address, data

    def close(self) -> None:
        """Unmap the page. A thread that is asleep on a word sleeps to the end of its timeout."""
        words, tickets, data = self.words, self.tickets, self.data
        self._forget(_NO_PAGE)
        if data is not None:
            assert isinstance(words, memoryview) and tickets is not None, "a mapped page has words"
            words.release()
            tickets.release()
            data.close()

    def signature(self) -> bytes | None:
        """The signature of the gate as it stands in the page; None without a page."""
        return None if self.data is None else self.data[_SIGNATURE]

    def begins_round(self, subscription_id: int, now_ns: int) -> bool:
        """Whether no process has looked at all consumers of a subscription of late; then this one is noted.

        Subscriptions that share a word, and a process without a page, look more often.

        Args:
            now_ns: boot time.
        """
        tickets = self.tickets if self.map(makes=True) else None
        if tickets is None:
            return True
        at, now_ms = _ROUND + subscription_id % _ROUNDS, now_ns // 1_000_000
        subscription, noted_ms = divmod(tickets[at], 1 << _TIME_BITS)
        own = subscription_id % (1 << 64 - _TIME_BITS)
        if subscription == own and 0 <= now_ms - noted_ms < _ROUND_MS:
            return False
        tickets[at] = own << _TIME_BITS | now_ms % (1 << _TIME_BITS)
        return True

    def word_address(self, word: int) -> int:
        """The address of a word of 32 bits of a mapped page."""
        return self._address + _WORD_BYTES * word

    def wake(self, word: int, count: int) -> int:
        """Change a word and wake its sleepers, at most `count`; return how many were asleep. The page is mapped."""
        words = self.words
        words[word] = (words[word] + 1) & _MASK  # type: ignore[index]
        return futex.wake(self.word_address(word), count)

    def announce_commit(self) -> None:
        """Wake every process that waits for a commit; called where WATCHED is set, after the commit.

        WATCHED is reset first: a process that sets it later has read COMMITS before, and so does not fall asleep, or
        sees the commit.
        """
        self.words[WATCHED] = 0  # type: ignore[index]
        self.wake(COMMITS, futex.EVERYONE)

    def watch_commits(self) -> int | None:
        """Ask for a wake at the next commit; return the word to sleep on. Then look for a commit, and then sleep.

        None if a second thread has closed the page meanwhile.
        """
        words = self.words
        try:
            seen = words[COMMITS]
            words[WATCHED] = 1  # type: ignore[index]
        except (TypeError, ValueError):
            return None
        return seen
