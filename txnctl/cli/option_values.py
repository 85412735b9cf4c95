"""Options of a command as one value with typed attributes, for commands with many options."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OptionValues:
    """Base of such values: an annotated attribute for each parameter of the command, by the parameter's name.

    Plain annotations in place of a dataclass: `dataclasses` would be loaded at every start for these classes alone.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        """Move the values of this class out of the arguments of the command."""
        for name in type(self).__annotations__:
            setattr(self, name, arguments.pop(name))
