"""The option `--if-not-exists` of commands that create: an existing object with the given options is success."""

from __future__ import annotations

from storage.errors import AlreadyExists
from txnctl.cli.decorators import option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

if_not_exists = option(
    "--if-not-exists",
    "may_exist",
    is_flag=True,
    help="Succeed if it exists; refuse one that differs in an option that is given (exit 4).",
)

CREATED_NOW = {"created": "Whether it was created now; false of --if-not-exists where it was there."}


def create_unless_there(may_exist: bool, create: Callable[[], object]) -> bool:
    """Create an object and return True; return False for an existing object with `may_exist`.

    Raises:
        AlreadyExists
    """
    try:
        create()
    except AlreadyExists as error:
        if not may_exist:
            error.hint = error.hint or "Take what is there (--if-not-exists), or choose another name."
            raise
        return False
    return True


def check_same(noun: str, *options: tuple[str, object, object]) -> None:
    """Compare given options with the existing object; each option is (name, given value or None, existing value).

    Args:
        noun: the object, such as `topic orders`.

    Raises:
        AlreadyExists: an option differs.
    """
    for name, given, existing in options:
        if given is not None and given != existing:
            shown = "not set" if existing is None else existing
            raise AlreadyExists(
                f"{noun} exists, and its {name} is {shown}, not {given}",
                hint="Leave the option out, or change what is there.",
            )
