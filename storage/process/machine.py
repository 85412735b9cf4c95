"""The facts that this machine tells of itself: files of /proc, names of users, the home directory.

A fact that only informs is None where the machine lacks it, as a container or a chroot may. A fact that a store cannot
do without is an error that names the fact: what the environment lacks is neither damage nor a bug.
"""

from __future__ import annotations

import os
from functools import cache

from storage.errors import PlatformUnsupported

PROC = "/proc"
_BOOT_ID = "sys/kernel/random/boot_id"
_BOOT_ID_BYTES = 16


def proc_file(name: str, size: int = -1) -> bytes | None:
    """The first bytes of a file below /proc; None where the system has or shows no such file."""
    try:
        with open(os.path.join(PROC, name), "rb") as file:
            return file.read(size)
    except OSError:
        return None


def pids() -> list[int]:
    """The pids of all processes that the system shows."""
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return []


@cache
def boot_id() -> bytes:
    """The id of this boot of the machine, 16 bytes, read once.

    Raises:
        PlatformUnsupported: the system does not tell.
        TooManyFiles
    """
    path = os.path.join(PROC, _BOOT_ID)
    number, why = b"", "it has no id"
    try:
        with open(path, "rb") as file:
            number = bytes.fromhex(file.read().strip().replace(b"-", b"").decode("ascii"))
    except OSError as error:
        from storage.system_errors import TOO_MANY, refusal

        if error.errno in TOO_MANY:
            raise refusal(f"cannot read {path}", error) from error
        why = error.strerror or str(error)
    except ValueError:
        pass
    if len(number) != _BOOT_ID_BYTES:
        raise PlatformUnsupported(
            f"{path} cannot be read: {why}",
            hint="A store needs this id of the boot: mount /proc here. No store is damaged.",
            missing=path,
        )
    return number


def temporary_directory() -> str:
    """The directory for temporary files, of TMPDIR or the system.

    Raises:
        PlatformUnsupported: none can be written.
    """
    import tempfile

    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise PlatformUnsupported(
            f"there is no directory for temporary files: {error.strerror}",
            hint="Set TMPDIR to a directory that this user may write.",
            missing="TMPDIR",
        ) from error


def user_name(number: int) -> str | None:
    """The name of a user; None without an entry in the table of users, as for the uid of a container."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return None


def home() -> str | None:
    """The home directory, from HOME or the table of users: an absolute path, or None without one."""
    import pwd

    place = os.environ.get("HOME", "")
    if not os.path.isabs(place):
        try:
            place = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return place if os.path.isabs(place) else None
