"""The decorators that declare a command: parameters, store, output and effect.

    @argument("topic", type=TOPIC, help="The topic.")
    @changes_store(effect="destroys")
    @administrative
    @forcible("Delete it although consumers are attached or open transactions hold messages.")
    @output(FIELDS, name_field="topic")
    @example("txnctl topics delete old --yes", setup="txnctl topics create old")
    def delete(context: Context, topic: str) -> None:

The function gets the `Context` and the declared arguments and options by name; the shared options (`--store`, `-o`,
`--dry-run`, ...) are attributes of the context.
"""

from __future__ import annotations

from typing import TypeVar

from txnctl.cli.declaration import EFFECTS, Example, Output, declaration_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from txnctl.cli.declaration import Body
    from txnctl.cli.option_values import OptionValues
    from txnctl.output.field import Field

F = TypeVar("F", bound="Body")

FORMATS = ("table", "wide", "json", "ndjson", "name")
"""What `-o` takes, unless a command says otherwise."""


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """An option, with the attributes of click's decorator of that name (`type`, `help`, `is_flag`, `multiple`,
    ...).
    """

    def declare(function: F) -> F:
        declaration_of(function).parameters.append(("option", names, attributes))
        return function

    return declare


def argument(name: str, **attributes: Any) -> Callable[[F], F]:
    """An argument, with the attributes of click's decorator of that name, and `help`."""

    def declare(function: F) -> F:
        declaration_of(function).parameters.append(("argument", (name,), attributes))
        return function

    return declare


def option_values(name: str, kind: type[OptionValues]) -> Callable[[F], F]:
    """Hand the parameters named in `kind` to the function as one argument of this name."""

    def declare(function: F) -> F:
        declaration_of(function).option_values[name] = kind
        return function

    return declare


def passes_arguments(function: F) -> F:
    """Pass every word after the first argument on to a command: `transactions run CMD -x`, with or without `--`."""
    declaration_of(function).passes_arguments = True
    return function


def numbers_are_arguments(function: F) -> F:
    """Take `-100` for an argument and not for an option: values and keys of tables may be negative numbers."""
    declaration_of(function).numbers_are_arguments = True
    return function


def effect(name: str) -> Callable[[F], F]:
    """The effect of a command that opens no store: `reads`, `writes` or `destroys`."""
    assert name in EFFECTS, name

    def declare(function: F) -> F:
        declaration_of(function).effect = name
        return function

    return declare


def reads_store(function: F) -> F:
    """Open the store read-only as `context.store`: nothing is created, no writer is blocked."""
    declaration = declaration_of(function)
    declaration.opens = "read"
    declaration.effect = declaration.effect or "reads"
    return function


def changes_store(*, effect: str = "writes") -> Callable[[F], F]:
    """Open the store for writing as `context.store`, and take `--yes`."""
    assert effect in ("writes", "destroys"), effect

    def declare(function: F) -> F:
        declaration = declaration_of(function)
        declaration.opens = "write"
        declaration.effect = effect
        return function

    return declare


def names_store(*, effect: str) -> Callable[[F], F]:
    """Take `--store` as `context.store_path` and leave opening to the command (`store init`, `demo`)."""
    assert effect in EFFECTS, effect

    def declare(function: F) -> F:
        declaration = declaration_of(function)
        declaration.opens = "path"
        declaration.effect = effect
        return function

    return declare


def administrative(function: F) -> F:
    """Take `--dry-run` and `--reason`, as `context.dry_run` and `context.reason`."""
    declaration_of(function).administrative = True
    return function


def asks(function: F) -> F:
    """Show `--yes` in the help: the command asks for confirmation. Every changing command takes the option."""
    declaration_of(function).asks = True
    return function


def forcible(overrides: str) -> Callable[[F], F]:
    """Take `--force`, as `context.force`; `overrides` is the help text: the safety check to override."""

    def declare(function: F) -> F:
        declaration_of(function).force_help = overrides
        return function

    return declare


def missing_ok(function: F) -> F:
    """Take `--missing-ok`: an object that does not exist is success, with a note, and `null` as JSON."""
    declaration_of(function).missing_ok = True
    return function


def output(
    fields: Iterable[Field],
    *,
    name_field: str,
    formats: tuple[str, ...] = FORMATS,
    default: str = "table",
    default_piped: str | None = None,
) -> Callable[[F], F]:
    """Take `-o`: the result has these fields, and `-o name` prints `name_field` alone.

    `default_piped` is the format when standard output is no terminal, where different.
    """

    def declare(function: F) -> F:
        declaration_of(function).output = Output(
            fields,
            name_field=name_field,
            formats=formats,
            default=default,
            default_piped=default_piped or default,
        )
        return function

    return declare


def partial_rows(function: F) -> F:
    """Say that a row of the result has those of the fields alone that options ask for. Stands above `output`."""
    output = declaration_of(function).output
    assert output is not None, "stands above `output`"
    output.partial = True
    return function


def typed_format(option: str) -> Callable[[F], F]:
    """Take the format from this option (`-o` is the short name) and never from TXNCTL_OUTPUT. Stands above `output`."""

    def declare(function: F) -> F:
        output = declaration_of(function).output
        assert output is not None, "stands above `output`"
        output.typed = option
        return function

    return declare


def example(*lines: str, setup: str | tuple[str, ...] = (), exit_code: int = 0) -> Callable[[F], F]:
    """Show these lines under "Examples". Tests run the lines in a shell, after `store init` and the lines of `setup`.

    `exit_code` is the expected status of the last line.
    """

    def declare(function: F) -> F:
        before = (setup,) if isinstance(setup, str) else setup
        # Inserted in front: decorators run from the last to the first.
        declaration_of(function).examples.insert(0, Example(lines, before, exit_code))
        return function

    return declare
