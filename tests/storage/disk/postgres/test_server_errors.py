"""Errors of the server name the store and the next step, and never a password."""

from __future__ import annotations

import pytest

from storage.disk.postgres import server_errors
from storage.disk.postgres.refusal import Refusal
from storage.errors import (
    CorruptStore,
    NotPermitted,
    ServerLost,
    ServerUnreachable,
    StoreFull,
    StoreInvalid,
    StoreNotFound,
    StoreUnsafe,
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


@pytest.mark.parametrize(
    ("refusals", "kind"),
    [
        ([("3D000", "answered")], StoreNotFound),
        ([("28P01", "answered")], NotPermitted),
        ([("28000", "answered")], NotPermitted),
        ([("42501", "answered")], NotPermitted),
        ([("", "no-password")], NotPermitted),
        ([("", "unencrypted")], StoreUnsafe),
        ([("53300", "answered")], ServerUnreachable),
        ([("53200", "answered")], ServerUnreachable),
        ([("57P03", "answered")], ServerUnreachable),
        ([("", "unsuitable")], ServerUnreachable),
        ([("", "silent")], ServerUnreachable),
        ([("", "silent"), ("28P01", "answered")], NotPermitted),
        ([("57P03", "answered"), ("", "unsuitable")], ServerUnreachable),
        ([("55000", "answered")], StoreInvalid),
    ],
)
def test_a_connection_that_is_not_made_is_explained(
    refusals: list[tuple[str, str]], kind: type[StoreInvalid]
) -> None:
    """By the state and the kind of each attempt, whatever the words; an answer that is not known is not retryable."""
    error = server_errors.not_admitted(URL, [Refusal("Worte", state, why) for state, why in refusals])
    assert type(error) is kind
    assert error.retryable is (kind is ServerUnreachable)
    assert "Worte" in error.message


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
