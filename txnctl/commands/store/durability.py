"""The option `--durability` of commands that make a store."""

from __future__ import annotations

from txnctl.cli.decorators import option
from txnctl.cli.value_types import NamedConstant

durability_option = option(
    "--durability",
    type=NamedConstant("durability", ("local", "replicated")),
    help="Whether each change waits for one machine's disk or for a synchronous standby too; local accepts a server"
    " without a standby. [default: local for a directory, replicated for a URL]",
)
