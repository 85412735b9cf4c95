"""`txnctl completion`: the script that teaches a shell to complete txnctl's commands, topics and transactions."""

from __future__ import annotations

from txnctl.cli.declaration import command
from txnctl.cli.decorators import argument, effect, example
from txnctl.cli.value_types import NamedConstant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


@command
@argument("shell", type=NamedConstant("shell", ("bash", "zsh", "fish")), help="bash, zsh or fish.")
@effect("reads")
@example('eval "$(txnctl completion bash)"')
@example("txnctl completion fish > txnctl.fish")
def completion(context: Context, shell: str) -> None:
    r"""Print the completion script of a shell.

    \b
    bash  put eval "$(txnctl completion bash)" into ~/.bashrc
    zsh   put eval "$(txnctl completion zsh)" into ~/.zshrc, after compinit
    fish  txnctl completion fish > ~/.config/fish/completions/txnctl.fish

    An installation with pip brings the scripts along, under share/ of its prefix. Completing looks into the store
    without waiting and changes nothing; a store that cannot be read offers nothing.
    """
    from txnctl.cli.complete import script

    context.out.write(script(shell))
