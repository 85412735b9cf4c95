"""A standby is synchronous if commits wait for it, which a role without rights cannot tell."""

from __future__ import annotations

import pytest

from storage.disk.server_status import ServerStatus, Standby


def status(standbys: list[Standby] | None) -> ServerStatus:
    return ServerStatus("15.1", 0, "replicated", "a", standbys, [], 3, 100, [])


@pytest.mark.parametrize(
    ("sync_state", "waits"), [("sync", True), ("quorum", True), ("async", False), (None, False)]
)
def test_commits_wait_for_synchronous_standbys(sync_state: str | None, waits: bool) -> None:
    """By the state that the server gives."""
    standby = Standby("a", None, "streaming", sync_state, 0, None)
    assert standby.is_synchronous == waits
    assert status([standby]).synchronous == ([standby] if waits else [])


def test_unseen_standbys_are_unknown() -> None:
    """Not none."""
    assert status(None).synchronous is None
    assert status([]).synchronous == []
