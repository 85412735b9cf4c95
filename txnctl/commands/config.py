"""`txnctl config`: the settings in force, from options, environment variables and defaults."""

from __future__ import annotations

from txnctl.cli.declaration import Group
from txnctl.cli.decorators import example, names_store, output
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

config = Group("config", "Show what options and environment variables add up to.")

FIELDS = (
    Field("name", "text", "The setting."),
    Field("value", "id", "Its value; null where it is not set."),
    Field("source", "text", "Where the value came from: an option, an environment variable, the default."),
    Field("variable", "text", "The environment variable that can set it."),
)


@config.command("show")
@names_store(effect="reads")
@output(FIELDS, name_field="name")
@example("txnctl config show")
@example("TXNCTL_LOCK_TIMEOUT=30s txnctl config show -o json")
def show(context: Context) -> None:
    """Show every setting with value and source.

    An option counts before the environment variable, the variable before the default. The store is not opened.
    """
    context.show_list(
        [
            {
                "name": setting.name,
                "value": setting.value,
                "source": setting.source,
                "variable": setting.variable,
            }
            for setting in context.settings()
        ]
    )
