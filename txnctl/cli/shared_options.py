"""The options that many commands take: `--store`, `-o`, `--lock-timeout`, `--yes`, `--dry-run` and their like.

The values reach the command through the `Context`, never as arguments, under names that start with `shared_`.
`--store`, `--color` and `--debug` are taken before the verb as well; the one nearest to the end of the line counts.
Environment variables are not click's business here: a variable in place of an option of the root must not override an
option typed after the verb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from txnctl import __version__
from txnctl.cli.click_commands import Command, Option
from txnctl.cli.settings import check_typed_store
from txnctl.cli.value_types import DURATION, NamedConstant, Reason
from txnctl.output.shell import name_store
from txnctl.output.stream import OutputStream

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from txnctl.cli.declaration import Declaration, Output

PREFIX = "shared_"
COLORS = ("auto", "always", "never")


def of_root() -> list[click.Parameter]:
    """Options before the verb."""
    version = Option(
        ["--version", "shared_version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        help="Show the version and exit.",
        shared=True,
    )
    return [_store(), _color(), _debug(), version]


def of_group() -> list[click.Parameter]:
    """Options between a group and the verb."""
    return [_store(), _color(), _debug()]


def of_command(declaration: Declaration) -> list[click.Parameter]:
    """The shared options of a command of this kind."""
    options: list[click.Parameter] = []
    if declaration.administrative:
        options.append(_flag("dry-run", "Show what would change, and change nothing."))
        options.append(
            Option(
                ["--reason", "shared_reason"],
                type=Reason(),
                metavar="TEXT",
                help="Why; kept in the audit trail.",
                shared=True,
            )
        )
    if declaration.force_help:
        options.append(_flag("force", declaration.force_help))
    if declaration.missing_ok:
        options.append(_flag("missing-ok", "Succeed if it does not exist, with a note."))
    if declaration.opens == "write" or declaration.effect in ("writes", "destroys"):
        options.append(_yes(hidden=not declaration.asks))
    if declaration.output is not None:
        options += [_output(declaration.output), _json_schema()]
    options.append(_quiet(hidden=not declaration.opens and declaration.effect == "reads"))
    if declaration.opens:
        options.append(_store())
    if declaration.opens in ("read", "write"):
        options.append(_lock_timeout())
    return [*options, _color(), _debug()]


def _flag(name: str, text: str) -> Option:
    return Option([f"--{name}", f"{PREFIX}{name.replace('-', '_')}"], is_flag=True, help=text, shared=True)


def _yes(*, hidden: bool) -> Option:
    """Every changing command takes it, so that a script can give it without looking; shown where something is asked."""
    return Option(["-y", "--yes", "shared_yes"], is_flag=True, help="Do not ask.", shared=True, hidden=hidden)


def _quiet(*, hidden: bool) -> Option:
    """Every command takes it; shown where a command may say something beside its result."""
    return Option(
        ["-q", "--quiet", "shared_quiet"],
        is_flag=True,
        help="No notes, progress or summary on standard error; warnings and errors stay.",
        shared=True,
        hidden=hidden,
    )


def _store() -> Option:
    return Option(
        ["--store", "shared_store"],
        metavar="STORE",
        is_eager=True,
        callback=_name_in_hints,
        shell_complete=_directories,
        help="The store's directory, or postgresql://user@host/db?store=NAME for a server."
        " [env: TXNCTL_STORE; default: $XDG_DATA_HOME/txnctl/store]",
        shared=True,
    )


def _lock_timeout() -> Option:
    return Option(
        ["--lock-timeout", "shared_lock_timeout"],
        type=DURATION,
        help="How long to wait for a lock. [env: TXNCTL_LOCK_TIMEOUT; default: 5s]",
        shared=True,
    )


def _output(output: Output) -> Option:
    default = output.default
    if output.default_piped != default:
        default = f"{default} on a terminal, else {output.default_piped}"
    wide = "`wide` is a table with all columns, " if "wide" in output.formats else ""
    environment = "" if output.typed else "env: TXNCTL_OUTPUT; "
    return Option(
        ["-o", output.typed or "--output", "shared_output"],
        type=NamedConstant("format", [*output.formats, "help"]),
        is_eager=True,
        callback=_explain_fields,
        metavar="|".join(output.formats),
        help=f"The format; {wide}`-o help` lists the fields. [{environment}default: {default}]",
        shared=True,
    )


def _json_schema() -> Option:
    return Option(
        ["--json-schema", "shared_json_schema"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_schema,
        help="Show the JSON Schema of the result in JSON, and exit.",
        shared=True,
    )


def _color() -> Option:
    return Option(
        ["--color", "shared_color"],
        type=NamedConstant("colour choice", COLORS),
        metavar="|".join(COLORS),
        help="Colours. [default: auto; NO_COLOR and TERM=dumb mean never]",
        shared=True,
    )


def _debug() -> Option:
    return Option(
        ["--debug", "shared_debug"],
        is_flag=True,
        help="Show where in the program an error arose.",
        shared=True,
    )


def _name_in_hints(ctx: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """Name the store in every command that this run shows, errors included; nearest to the end of the line counts."""
    if path is not None and not ctx.resilient_parsing:
        check_typed_store(path)
        name_store(path)
    return path


def _explain_fields(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value == "help" and not ctx.resilient_parsing:
        from txnctl.output.field import KINDS
        from txnctl.output.table_layout import LaidColumn, laid_out

        assert isinstance(ctx.command, Command)
        output = ctx.command.declaration.output
        assert output is not None
        fields = list(output.fields)
        columns = [
            LaidColumn("FIELD", "id", [field.name for field in fields]),
            LaidColumn("TYPE", "text", [KINDS[field.kind] for field in fields]),
            LaidColumn("WHAT IT SAYS", "text", [field.help for field in fields]),
        ]
        OutputStream().print(str(laid_out(columns, OutputStream().width())))
        ctx.exit()
    return value


def _show_schema(ctx: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        from txnctl.output import json_text
        from txnctl.output.json_schema import schema_of

        assert isinstance(ctx.command, Command)
        output = ctx.command.declaration.output
        assert output is not None
        OutputStream().print(
            json_text.indented(schema_of(ctx.command_path, output.fields, partial=output.partial))
        )
        ctx.exit()


def _show_version(ctx: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        OutputStream().print(f"txnctl {__version__}")
        ctx.exit()


def _directories(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]
