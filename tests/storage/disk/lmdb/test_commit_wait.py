"""The wait for a commit: by the word of the wake page, and by short sleeps where there is no page."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from storage import Store
from storage.disk.lmdb import commit_wait
from storage.process.clock import SYSTEM_CLOCK, Clock
from storage.process.wake_page import COMMITS, WATCHED, WakePage

HOUR_NS = 3600 * 10**9


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(Store.create(tmp_path / "store") or tmp_path / "store")


class Sleeps(Clock):
    """The machine's clock, which notes the sleeps."""

    __slots__ = ("short", "words")

    def __init__(self) -> None:
        self.short: list[float] = []
        self.words: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.short.append(seconds)
        super().sleep(seconds)

    def sleep_on_word(self, address: int, seen: int, seconds: float) -> bool:
        self.words.append(seconds)
        return super().sleep_on_word(address, seen, seconds)


def wait_in_thread(store: Store, seen: int) -> tuple[threading.Thread, list[bool]]:
    answers: list[bool] = []
    until_ns = SYSTEM_CLOCK.boot_ns() + HOUR_NS
    thread = threading.Thread(
        target=lambda: answers.append(store.connection.wait_for_commit(seen, until_ns)), daemon=True
    )
    thread.start()
    return thread, answers


def visible(store: Store) -> int:
    return store.connection.environment.visible_commit()


def test_a_commit_wakes_and_is_shown(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a timeout: each sleep might be an hour long."""
    monkeypatch.setattr(commit_wait, "WAKE_MAX_S", 3600.0)
    monkeypatch.setattr(commit_wait, "_VISIBLE_S", 3600.0)
    with Store.open(path) as store:
        page = store.connection.environment.locks.page
        for number in range(20):
            seen = visible(store)
            thread, answers = wait_in_thread(store, seen)
            while not page.words[WATCHED]:
                assert thread.is_alive() or answers
            store.create_topic(f"t{number}")
            thread.join(30)
            assert answers == [True]
            assert visible(store) > seen


def test_nobody_is_woken_where_nobody_watches(path: str) -> None:
    """The word stays, so that a commit costs no system call more."""
    with Store.open(path) as store:
        page = store.connection.environment.locks.page
        before = page.words[COMMITS]
        store.create_topic("t")
        assert page.words[COMMITS] == before


def test_a_commit_that_announces_nothing_is_seen_at_the_end_of_a_sleep(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a process killed after its commit, or of an earlier release."""
    monkeypatch.setattr(WakePage, "announce_commit", lambda page: None)
    with Store.open(path) as store:
        thread, answers = wait_in_thread(store, visible(store))
        store.create_topic("t")
        thread.join(30)
        assert answers == [True]


def test_without_a_page_the_wait_looks_after_short_sleeps(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a read-only file system."""
    monkeypatch.setattr(WakePage, "map", lambda page, *, makes: False)
    clock = Sleeps()
    with Store.open(path, clock=clock) as store:
        thread, answers = wait_in_thread(store, visible(store))
        while not clock.short:
            assert thread.is_alive()
        store.create_topic("t")
        thread.join(30)
        assert answers == [True]
        assert not clock.words
        assert max(clock.short) <= commit_wait.WAKE_S


def test_a_busy_store_does_not_wake_a_follower_for_each_commit(path: str) -> None:
    """Two returns over commits are a millisecond apart."""
    clock = Sleeps()
    with Store.open(path, clock=clock) as store:
        until_ns = clock.boot_ns() + HOUR_NS
        for number in range(3):
            seen = visible(store)
            store.create_topic(f"t{number}")
            assert store.connection.wait_for_commit(seen, until_ns)
        # A commit takes less than the rest, or more on a busy disk.
        assert all(0 < seconds <= 0.001 for seconds in clock.short)


def test_a_reader_waits_for_the_message_that_it_promises(path: str) -> None:
    """`has_message_available` with a timeout, which `consume --follow` uses."""
    with Store.open(path) as store:
        store.create_topic("t")
        reader = store.reader("t")
        assert not reader.has_message_available()
        assert not reader.has_message_available(0.01)
        sender = threading.Timer(0.02, lambda: store.create_producer("t").send(b"x"))
        sender.start()
        assert reader.has_message_available(30)
        assert reader.read_next(0).value == b"x"
        sender.join()
