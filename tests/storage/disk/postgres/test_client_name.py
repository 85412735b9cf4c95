"""A client of the server is known by the name and address of its session."""

from __future__ import annotations

import os

import pytest

from storage.disk.postgres.client_name import ClientName, application


def test_a_process_of_ours_has_host_pid_and_program() -> None:
    """The program comes last, and may be cut by the server."""
    client = ClientName.parse(b"txnctl:db-2:48211:loa", b"10.0.0.7")
    assert client == (48211, "db-2", "loa")
    assert client.words(77) == "process 48211 on db-2 (loa)"
    held = client.holder(77, "open", "anna")
    assert held[:5] == (48211, "process 48211 on db-2 (loa)", "open", "db-2", "loa")
    assert (held.session, held.user) == (77, "anna")
    assert not client.is_here


def test_this_process_knows_itself() -> None:
    """So that it is not listed among the others."""
    client = ClientName.parse(application().encode(), None)
    assert client.is_this
    assert client.pid == os.getpid()
    assert not client.is_stopped


def test_a_process_of_another_host_is_not_judged_by_its_pid() -> None:
    """It may have the pid of a process here."""
    name = ClientName.parse(f"txnctl:elsewhere:{os.getpid()}:loader".encode(), b"10.0.0.2")
    assert (name.host, name.program) == ("elsewhere", "loader")
    assert not name.is_here
    assert not name.is_stopped


@pytest.mark.parametrize(
    ("name", "address", "words"),
    [
        (b"psql", b"10.0.0.7", "session 77 of the server from 10.0.0.7 (psql)"),
        (b"", None, "session 77 of the server"),
        (None, None, "session 77 of the server"),
        (b"txnctl:db-2:x", b"", "session 77 of the server (txnctl:db-2:x)"),
        (b"a\x1b[2Jb", b"", "session 77 of the server (a\\x1b[2Jb)"),
    ],
)
def test_any_other_client_is_named_by_its_session(
    name: bytes | None, address: bytes | None, words: str
) -> None:
    """An operator of the server ends it by that number; a name cannot drive a terminal."""
    assert ClientName.parse(name, address).words(77) == words


def test_a_holder_that_is_no_process_of_ours_has_its_user() -> None:
    """Beside the name that it gives itself, if any."""
    for name, words in ((b"psql", "psql, user anna"), (b"", "user anna")):
        held = ClientName.parse(name, b"10.0.0.7").holder(77, "held", "anna")
        assert held.holder == f"session 77 of the server from 10.0.0.7 ({words})"
