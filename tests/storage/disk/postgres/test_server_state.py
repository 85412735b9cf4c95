"""The identity of a server is the same for all its sessions, and its promises are read from its settings."""

from __future__ import annotations

import pytest

from storage.disk.postgres.server_state import ServerState
from storage.disk.postgres.session import Session
from storage.errors import ServerUnreachable
from tests.storage.disk.postgres.conftest import connected


def test_sessions_of_a_server_agree(url: str, session: Session) -> None:
    """A primary with fsync, without a standby."""
    second = connected(url)
    state = ServerState.read(session)
    assert state == ServerState.read(second)
    assert (state.fsync, state.full_page_writes, state.is_standby, state.has_standby) == (
        True,
        True,
        False,
        False,
    )
    assert state.system
    assert state.timeline == 1
    second.close()


def test_a_standby_is_refused(session: Session) -> None:
    """With the way to the primary."""
    state = ServerState.read(session)._replace(is_standby=True)
    with pytest.raises(ServerUnreachable, match="standby"):
        state.check_primary("postgresql://h/d")
