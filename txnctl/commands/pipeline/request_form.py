"""The options that say where a message holds the accounts and amounts of a request."""

from __future__ import annotations

from typing import TypeVar

from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.declaration import Body
    from txnctl.pipelines.request import RequestForm

F = TypeVar("F", bound="Body")


class RequestArguments(OptionValues):
    """Names of fields of the JSON."""

    amount: str
    debit: str | None
    credit: str | None
    legs: str | None

    def form(self) -> RequestForm:
        """The form of requests.

        Raises:
            InvalidValue: options that do not go together.
        """
        from txnctl.pipelines.request import RequestForm

        return RequestForm(self.amount, self.debit, self.credit, self.legs)


def names_request_fields(function: F) -> F:
    """Take --amount, --debit, --credit and --legs as `fields`."""
    for name, help_ in (
        ("--legs", "A list of objects, each with an account and an amount; all apply at once."),
        ("--credit", "The account that the amount is added to. Goes with --debit."),
        ("--debit", "The account that the amount is subtracted from, instead of the key."),
    ):
        function = option(name, metavar="FIELD", help=help_)(function)
    with_amount = option(
        "--amount",
        metavar="FIELD",
        default="delta",
        help="The field of the JSON with the amount. [default: delta]",
    )
    return option_values("fields", RequestArguments)(with_amount(function))
