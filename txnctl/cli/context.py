"""One run of one command: the store, the streams, and the values of the shared options.

The context is the first argument of a command. The store is opened before the command's body and closed after, also
after an error. Results go to standard output through `show`, `show_list` or `out`, notes and warnings to standard
error.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from storage.errors import NeedsConfirmation, NotFound, TxnctlError
from storage.values.store_name import is_url
from txnctl.cli import settings
from txnctl.cli.of_now import OfNow
from txnctl.output.escape import printable
from txnctl.output.stream import OutputFailed, OutputStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import NoReturn, Self

    import click

    from storage import Store
    from txnctl.cli.declaration import Declaration, Output
    from txnctl.output.column import Column
    from txnctl.output.field import Field
    from txnctl.output.progress import ProgressLine
    from txnctl.output.render import RowForm
    from txnctl.output.table_layout import TextTable

R = TypeVar("R")

_SHARED = "shared_"
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Context:
    """Store, output and shared options of one run.

    Attributes:
        arguments: the command's own arguments and options by name, converted.
        store_path: the path or URL that `--store`, TXNCTL_STORE or the default gives. A URL of the environment may
            have a password: `shown_store` has none.
        output: the format of the result: `table`, `json`, `ndjson`, `name`, or a format that the command declares;
            `-o wide` is a table too.
        width: columns of the terminal for the result; None where there is no terminal.
        dry_run: show the changes, change nothing.
        reason: why, for the audit trail; None if not said.
        yes: do not ask.
        quiet: no notes and no progress.
        force: override the command's safety check.
        lock_timeout: seconds to wait for a lock.
        out: standard output.
        color: whether the result is coloured.
    """

    def __init__(self, click_context: click.Context, declaration: Declaration) -> None:
        self._click = click_context
        self._declaration = declaration
        self._store: Store | None = None
        self._has_noted = False
        own = click_context.params
        self.arguments = {name: value for name, value in own.items() if not name.startswith(_SHARED)}
        self.dry_run: bool = own.get("shared_dry_run", False)
        self.reason: str | None = own.get("shared_reason")
        self.yes: bool = own.get("shared_yes", False)
        self.quiet: bool = own.get("shared_quiet", False)
        self.force: bool = own.get("shared_force", False)
        self.missing_ok: bool = own.get("shared_missing_ok", False)
        self.lock_timeout = (
            settings.lock_timeout(own.get("shared_lock_timeout")) if declaration.opens else 0.0
        )
        self.out = OutputStream()
        self.color = settings.colored(shared(click_context, "color"), self.out.terminal)
        self.output = self._format()
        self.width = self.out.width()
        self._table_width = self.width
        if self.output == "wide":
            self.output, self._table_width = "table", None

    def _format(self) -> str:
        output = self._declaration.output
        if output is None:
            return "table"
        default = output.default if self.out.terminal else output.default_piped
        typed: str | None = self._click.params.get("shared_output")
        return (typed or default) if output.typed else settings.output_format(typed, output.formats, default)

    # -- the store

    def __enter__(self) -> Self:
        opens = self._declaration.opens
        if opens in ("read", "write"):
            self._store = self.open_store(self.store_path, read_only=opens == "read")
        try:
            self._know_times()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.out.flush()
            elif isinstance(error, Exception):
                self.out.flush_if_possible()
                self._say_kept(error)
        except OutputFailed as failed:
            self._say_kept(failed)
            raise
        finally:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _know_times(self) -> None:
        """Turn the ages among the arguments into times, by the clock of the store."""
        of_now = {name: value for name, value in self.arguments.items() if isinstance(value, OfNow)}
        if of_now:
            now_ms = self._now_ms()
            self.arguments |= {name: value.at(now_ms) for name, value in of_now.items()}

    def _now_ms(self) -> int:
        if self._store is not None:
            return self._store.connection.clock.wall_ms()
        if self._declaration.opens and is_url(self.store_path):
            with self.open_store(self.store_path, read_only=True) as store:
                return store.connection.clock.wall_ms()
        from storage.process.clock import SYSTEM_CLOCK

        return SYSTEM_CLOCK.wall_ms()

    def _say_kept(self, error: Exception) -> None:
        """Say that a change is kept though the output is lost: only where the command may have changed something."""
        changes = self._declaration.opens != "read" and self._declaration.effect != "reads"
        if changes and isinstance(error, OutputFailed) and error.hint is None:
            error.hint = "What the command changed is kept; only the output is incomplete."

    @property
    def store(self) -> Store:
        """The store, open for reading or writing as the command declared."""
        assert self._store is not None, "the command declares no store"
        return self._store

    @property
    def program(self) -> str:
        """The name of the command in records of owners: `txnctl transactions begin`.

        A command that runs another one adds the name of that one: `txnctl transactions run load.sh`. Arguments may be
        secrets, and are left out.
        """
        path, command = self._click.command_path, self._click.params.get("command")
        if not self._declaration.passes_arguments or not command:
            return path
        return f"{path} {command[0].rpartition('/')[2]}"

    def open_store(self, path: str, *, read_only: bool) -> Store:
        """Open a further store, for a `with` statement."""
        from storage import Store

        return Store.open(
            path,
            read_only=read_only,
            lock_timeout=self.lock_timeout,
            on_wait=self._note_wait,
            program=self.program,
        )

    def _note_wait(self, holder: str, _waited_s: float) -> None:
        self.note(f"waiting for the writer gate, held by {holder}; --lock-timeout is {self.lock_timeout:g}s")

    def settings(self) -> list[settings.Setting]:
        """All settings of this run, with where each came from."""
        own = self._click.params
        return settings.every(
            store_typed=shared(self._click, "store"),
            output_typed=own.get("shared_output"),
            color_typed=shared(self._click, "color"),
        )

    @cached_property
    def store_path(self) -> str:
        return settings.store(shared(self._click, "store")).value or ""

    @property
    def shown_store(self) -> str:
        """The name of the store for people: a path as it is, a URL without a password."""
        return settings.shown_store(self.store_path)

    @property
    def store_directory(self) -> str | None:
        """The directory of the store; None for a store on a server."""
        return None if is_url(self.store_path) else self.store_path

    def store_of_children(self, store: Store) -> str:
        """The name of the open store as TXNCTL_STORE of a child: a whole path, or a URL with all that was given."""
        return self.store_path if is_url(self.store_path) else store.path

    # -- the result, on standard output

    def show(self, row: R, *, table: Callable[[R], str | Iterable[str]] | None = None) -> None:
        """Print one named thing, a typed row, in the format asked for.

        `table` lays the row out for people, as text or lines, from a copy with texts that are harmless on a terminal.
        Without `table` the output has a line a field.
        """
        from txnctl.output import render

        self.out.write(render.one(row, self.output, self._row_form(), table))

    def show_missing(self, error: NotFound) -> None:
        """Tell that the object of a command with --missing-ok does not exist: a note, and `null` as JSON."""
        if self.output == "json":
            self.out.write("null\n")
        self.note(f"{error.message}: nothing was changed")

    def show_list(
        self, rows: Iterable[R], *, table: Callable[[Sequence[R]], str | Iterable[str]] | None = None
    ) -> None:
        """Print a list, in the format asked for. NDJSON and names are written as the rows come.

        An empty table is told of on standard error, unless the command has said why it is empty.
        """
        from txnctl.output import render

        if self.output == "table":
            rows = list(rows)
            if not rows and not self._has_noted:
                self.note("there is nothing to list")
        for text in render.many(rows, self.output, self._row_form(), table):
            self.out.write(text)

    def _row_form(self) -> RowForm:
        from txnctl.output.render import RowForm

        output = self._declared_output()
        return RowForm(output.fields, output.name_field, self.out.terminal, self.width, self._table_width)

    def table_of(
        self,
        rows: Sequence[R],
        columns: Iterable[Column[R] | Field],
        *,
        indent: int = 0,
    ) -> TextTable:
        """Rows in aligned columns, for a section inside a larger report; empty where there are no rows.

        `indent` columns are left free for a prefix of each line.
        """
        from txnctl.output.table import list_table

        return list_table(rows, columns, self.table_width(indent))

    def table_width(self, indent: int = 0) -> int | None:
        """Columns that a table may take; None with `-o wide`, or without a terminal."""
        return None if self._table_width is None else max(1, self._table_width - indent)

    def measure(self, columns: int | None = None) -> None:
        """Take the width of the terminal anew, which may have changed: this one, or as the terminal says."""
        is_wide = self._table_width is None
        self.width = columns or self.out.width()
        self._table_width = None if is_wide else self.width

    def print_lines(self, lines: Iterable[str]) -> None:
        """Print lines for people, on a terminal in lines of its width."""
        from txnctl.output.prose import fitted

        self.out.write("".join([f"{line}\n" for line in fitted(lines, self.width)]))

    def style(self, text: str, *styles: str) -> str:
        """The text in bold, dim, red, green, yellow or cyan, where the result is coloured."""
        if not self.color or not styles:
            return text
        return f"\x1b[{';'.join([_STYLES[style] for style in styles])}m{text}\x1b[0m"

    def _declared_output(self) -> Output:
        assert self._declaration.output is not None, "the command declares no output"
        return self._declaration.output

    # -- notes and questions, on standard error

    def note(self, text: str) -> None:
        """Say something that is not the result; nothing with --quiet."""
        self._has_noted = True
        if not self.quiet:
            _say(f"txnctl: {printable(text)}")

    def warn(self, text: str) -> None:
        """Say something that deserves attention, and go on."""
        _say(f"txnctl: warning: {printable(text)}")

    def progress(self, label: str, *, total: int | None = None, unit: str = "messages") -> ProgressLine:
        """A progress line, as a context manager: `with context.progress("Verify", total=n) as bar: bar.advance()`."""
        from os import environ

        from txnctl.output.progress import ProgressLine

        watched = (
            not self.quiet
            and sys.stderr is not None
            and sys.stderr.isatty()
            and environ.get("TERM") != "dumb"
        )
        return ProgressLine(label, total, unit, watched=watched)

    def confirm(self, question: str, plan: Sequence[str] = ()) -> None:
        """Ask for confirmation: `--yes`, or `y` on a terminal. A dry run changes nothing and is not asked.

        Raises:
            NeedsConfirmation: there is no terminal to ask on, or the answer was no.
        """
        if self.yes or self.dry_run:
            return
        asked = (
            sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
        )
        if asked or self.output not in ("json", "ndjson"):
            for line in plan:
                _say(printable(line))
        if not asked:
            raise NeedsConfirmation(
                f"{printable(question)} There is no terminal to ask on.",
                hint="Give --yes to go on without asking.",
                plan=list(plan),
            )
        _say(f"{printable(question)} [y/N] ", end="")
        answer = sys.stdin.readline()
        if answer.strip().lower() not in ("y", "yes"):
            if not answer:
                print(file=sys.stderr)
            raise NeedsConfirmation("not confirmed; nothing was changed", plan=list(plan))

    def report_failure(self, error: TxnctlError) -> None:
        """Report an error after which the command goes on, as an error that ends a command is reported."""
        from txnctl.cli import error_report

        error_report.write(error_report.of(error), as_json=self.output in ("json", "ndjson"))
        self._has_noted = True

    def exit_as(self, error: TxnctlError) -> NoReturn:
        """Close everything and end with the exit code of a failure that was reported."""
        from txnctl.cli import exit_codes

        self.exit(exit_codes.code_of(error)[1])

    def help_of(self, words: Sequence[str]) -> str:
        """The help of the command of these words, without `txnctl`.

        Raises:
            click.UsageError: no such command.
        """
        from click import UsageError

        from txnctl.cli.click_commands import GroupCommand

        at = self._click.find_root()
        command = at.command
        for number in range(len(words)):
            if not isinstance(command, GroupCommand):
                break
            try:
                name, member, _ = command.resolve_command(at, [*words[number:]])
            except UsageError as error:
                from txnctl.cli.unknown_command import add_help_hint

                add_help_hint(error, self._click.find_root(), words[: number + 1], command.table)
                raise
            assert member is not None, "an unknown command raises"
            at, command = type(at)(member, parent=at, info_name=name, **member.context_settings), member
        return f"{command.get_help(at)}\n"

    def exit(self, status: int) -> NoReturn:
        """Close everything and end with this exit code."""
        self.out.flush()
        self._click.exit(status)


def _say(text: str, end: str = "\n") -> None:
    """Write to standard error, in lines of the terminal's width."""
    from txnctl.output.prose import wrapped
    from txnctl.output.stream import terminal_width

    with suppress(OSError):
        # A terminal that is gone, or a full disk: nobody reads the note, and the work goes on.
        print("\n".join(wrapped(text, terminal_width(sys.stderr))), end=end, file=sys.stderr, flush=True)


def shared(click_context: click.Context, name: str) -> Any:
    """The value of a shared option as typed nearest to the end of the line; None if not typed."""
    at: click.Context | None = click_context
    while at is not None:
        value = at.params.get(_SHARED + name)
        if value is not None:
            return value
        at = at.parent
    return None
