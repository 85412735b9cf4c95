"""Whole numbers of options and arguments: `WholeNumber(1)` is 1 or more, `WholeNumber(1, 9)` at most 9."""

# The signatures are click's.
# ruff: noqa: ARG002

from __future__ import annotations

from typing import Any

import click

from txnctl.cli.value_types import place_of

_MOST = (1 << 63) - 1
"""No number of a store is larger."""


class WholeNumber(click.IntRange):
    """A number in digits, between two bounds; the second may be left out."""

    @property
    def sample(self) -> str:
        """A number that hints show."""
        return str(max(int(self.min or 0), min(10, int(_MOST if self.max is None else self.max))))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """`N`, wherever nothing closer is said."""
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that was typed; a default that is a number already stays unchanged.

        Raises:
            click.UsageError: names the option, or the variable that stands for the option.
        """
        if not isinstance(value, str):
            return value
        digits, shown = value.removeprefix("-"), repr(value[:80])
        if not (digits.isascii() and digits.isdigit()):
            raise self._refusal(f"{shown} is not a whole number", param, ctx)
        number = int(value) if len(digits) <= len(str(_MOST)) else _MOST + 1
        if value.startswith("-") or (self.min is not None and number < self.min):
            raise self._refusal(f"{shown} is too small", param, ctx)
        if number > (_MOST if self.max is None else self.max):
            raise self._refusal(f"{shown} is too large", param, ctx)
        return number

    def _refusal(
        self, what: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> click.UsageError:
        bounds = f"{self.min} or more" if self.max is None else f"{self.min} to {self.max:,}"
        return click.UsageError(f"{place_of(param, ctx)}{what} ({bounds})", ctx)
