"""The directory for staged files of a write to a store on a server that names no `stagingPath`: local to this host.

Enough for a master of `local`. A task on a second host finds no such directory, and fails with an error
that names the directory.
"""

from __future__ import annotations

import os
import stat

from storage.errors import NotPermitted
from storage.process.machine import temporary_directory


def temporary_staging_path() -> str:
    """The path of this user's directory, which may be missing."""
    return os.path.join(temporary_directory(), f"txnctl-staging-{os.geteuid()}")


def make_temporary_staging() -> str:
    """Make a missing directory, for this user alone; return the path.

    Raises:
        NotPermitted: the name is taken by a second user, or the directory is open to further users.
    """
    path = temporary_staging_path()
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        status = os.lstat(path)
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if not is_ours or status.st_mode & 0o077:
            raise NotPermitted(
                f"{path} is no directory of this user alone, and would hold the rows of this write",
                hint="Remove it, or give stagingPath.",
            ) from None
    except OSError as error:
        raise NotPermitted(
            f"cannot make {path} for staged files: {error.strerror}", hint="Give stagingPath."
        ) from None
    return path
