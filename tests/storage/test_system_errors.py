"""Errors of the operating system: the number alone decides the kind of the error."""

from __future__ import annotations

import errno
import os

import pytest

from storage.errors import NotPermitted, StoreFull, StoreInvalid, TooManyFiles
from storage.system_errors import refusal, system_refusal


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EMFILE, TooManyFiles), (errno.ENFILE, TooManyFiles), (errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull),
        (errno.EFBIG, StoreFull), (errno.EACCES, NotPermitted), (errno.EROFS, NotPermitted), (errno.EIO, StoreInvalid),
    ],
)  # fmt: skip
def test_an_error_number_is_one_kind_of_error(number: int, kind: type[StoreInvalid]) -> None:
    """The message tells the file and the words of the system; only a full disk asks for space."""
    refused = refusal("cannot open /s/store.lock", OSError(number, os.strerror(number)))
    assert type(refused) is kind
    assert refused.message == f"cannot open /s/store.lock: {os.strerror(number)}"
    assert ("read-only: mount it for writing" in (refused.hint or "")) is (number == errno.EROFS)
    assert ("space" in (refused.hint or "")) is (kind is StoreFull)


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS, errno.ENOMEM, errno.ESTALE]
)
def test_an_error_of_the_disk_or_the_system_is_no_bug(number: int) -> None:
    """At whatever call it arises, it is an error of storage."""
    refused = system_refusal("cannot use /s", OSError(number, os.strerror(number)))
    assert refused is not None and refused.message == f"cannot use /s: {os.strerror(number)}"


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "Broken pipe"), FileNotFoundError(2, "No file"), ValueError()]
)
def test_an_error_of_a_program_stays_what_it_is(error: Exception) -> None:
    """A closed pipe, a wrong path and the rest are not the disk's."""
    assert system_refusal("cannot use /s", error) is None
