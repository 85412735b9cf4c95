"""A session names its process, and a session of somebody else is told apart."""

from __future__ import annotations

import os

from storage.disk.postgres.client_name import ClientName, application


def test_a_process_reads_its_own_name() -> None:
    """Host, pid and program; a process of this host can be seen to run."""
    name = ClientName.parse(application().encode(), None)
    assert (name.pid, name.host) == (os.getpid(), os.uname().nodename)
    assert name.is_here
    assert name.is_this
    assert not name.is_stopped
    assert f"process {os.getpid()} on" in name.words(7)


def test_a_process_of_another_host_is_not_judged_by_its_pid() -> None:
    """It may have the pid of a process here."""
    name = ClientName.parse(f"txnctl:elsewhere:{os.getpid()}:loader".encode(), b"10.0.0.2")
    assert (name.host, name.program) == ("elsewhere", "loader")
    assert not name.is_here
    assert not name.is_stopped


def test_another_client_is_named_by_its_session() -> None:
    """With its address and name as far as they are known; control characters are escaped."""
    name = ClientName.parse(b"ps\x1bql", b"10.0.0.2")
    assert name.pid is None
    assert name.words(7) == "session 7 of the server from 10.0.0.2 (ps\\x1bql)"
    assert ClientName.parse(None, None).words(8) == "session 8 of the server"
    assert ClientName.parse(b"txnctl:host", None).pid is None
