"""Errors of the server name the store and the next step, and never a password."""

from __future__ import annotations

import pytest

from storage.disk.postgres import server_errors
from storage.errors import (
    CorruptStore,
    NotPermitted,
    ServerLost,
    ServerUnreachable,
    StoreFull,
    StoreInvalid,
)

URL = "postgresql://h/d?store=bank"


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53100", StoreFull), ("53200", StoreInvalid), ("53300", ServerUnreachable), ("42501", NotPermitted),
        ("28P01", NotPermitted), ("25006", ServerUnreachable), ("57P03", ServerUnreachable), ("XX001", CorruptStore),
        ("22012", StoreInvalid),
    ],
)  # fmt: skip
def test_the_state_decides_the_kind(state: str, kind: type[StoreInvalid]) -> None:
    """With the message of the server on one line, and a hint."""
    error = server_errors.refused(URL, state, "first line\nsecond")
    assert type(error) is kind
    assert "first line second" in error.message
    assert error.hint


@pytest.mark.parametrize("message", ['FATAL: database "d" does not exist', "connection refused"])
def test_the_words_of_a_connection_that_is_not_made_decide_nothing(message: str) -> None:
    """Kinds come from the server's fields alone, whatever language it speaks."""
    assert type(server_errors.unreachable(URL, message)) is ServerUnreachable


def test_passwords_are_left_out() -> None:
    """In either form of a connection string."""
    for text in ("cannot use password=secret here", "postgresql://u:secret@h/d failed"):
        assert "secret" not in server_errors.plain(text)
        assert "secret" not in server_errors.lost(URL, text).message


def test_a_lost_connection_may_be_tried_again() -> None:
    """By a new handle."""
    error = server_errors.lost(URL, "gone")
    assert isinstance(error, ServerLost)
    assert error.retryable
    assert error.exit_code == 6
