"""Errors of the operating system: the number alone decides the kind of the error."""

from __future__ import annotations

import errno
import os

import pytest

from storage.errors import NotPermitted, StoreFull, StoreInvalid, TooManyFiles
from storage.system_errors import refusal


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
