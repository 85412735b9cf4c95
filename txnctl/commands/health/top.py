"""`txnctl top`: one live screen of the store."""

from __future__ import annotations

from txnctl.cli import exit_codes
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, option, reads_store
from txnctl.cli.value_types import DURATION
from txnctl.cli.watch import EVERY, EVERY_MIN_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.commands.health.top_choice import LiveChoice
    from txnctl.commands.health.top_screen import LiveLook
    from txnctl.output.full_screen import FullScreen


@command
@option(
    "--watch",
    "every",
    type=DURATION,
    default=EVERY,
    metavar="EVERY",
    help=f"Look at the store so often. [default: {EVERY}]",
)
@reads_store
@example("txnctl top --watch 5s", exit_code=2)
def top(context: Context, every: float) -> None:
    """Watch the store on one live screen: problems, rates, topics, transactions, consumers.

    Problems come first, the worst on top, as `doctor` has them; a small terminal keeps them, and says how many more
    there are. Below are messages in and out, commits, aborts and conflicts in a second since the last look, and one of
    three tables, rows that need attention first.

    Tab or 1 to 4 choose problems or a table, arrow keys a row; Enter explains it, with the command to paste, and Esc
    goes back. `s` sorts by the next column, `r` backwards, `/` shows only rows with a text, `?` lists the keys, `q`
    leaves.

    Nothing is written, no lock is taken, and no view of the store is held between two looks. It needs a terminal;
    elsewhere use `txnctl status`.
    """
    from txnctl.output.full_screen import FullScreen, why_impossible

    reason = why_impossible()
    if reason is not None:
        import click

        from txnctl.output.shell import line

        raise click.UsageError(f"{reason}: use `{line('status')}`, which prints the same once")
    try:
        with FullScreen(color=context.color) as terminal:
            _Live(context, terminal, max(every, EVERY_MIN_S)).run()
    except KeyboardInterrupt:
        context.exit(exit_codes.INTERRUPTED)


class _Live:
    """The loop: look, draw, take a key or wait for the next look."""

    def __init__(self, context: Context, terminal: FullScreen, every_s: float) -> None:
        self._context = context
        self._terminal = terminal
        self._every_s = every_s
        self._look = self._first_look()
        self._text: list[str] = []
        self._text_key: tuple[object, object, object] = (None, None, None)

    def run(self) -> None:
        """Until the operator leaves.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        from txnctl.commands.health.top_choice import LiveChoice

        choice = LiveChoice(has_problems=bool(self._look.live.overview.findings))
        clock = self._context.store.connection.clock
        due_ns = clock.boot_ns() + int(self._every_s * 1e9)
        while not choice.has_left:
            self._draw(choice)
            key = self._terminal.key((due_ns - clock.boot_ns()) / 1e9)
            if key:
                choice.press(key, self._look.rows)
            if clock.boot_ns() >= due_ns:
                self._look_again()
                due_ns = clock.boot_ns() + int(self._every_s * 1e9)

    def _first_look(self) -> LiveLook:
        from txnctl.commands.health.top_screen import LiveLook

        return LiveLook.from_facts(self._context.store.reports.live_facts(), None)

    def _look_again(self) -> None:
        from storage.reports.live import rates_between
        from txnctl.commands.health.top_screen import LiveLook

        store = self._context.store
        store.connection.look_in_place()
        live = store.reports.live_facts()
        self._look = LiveLook.from_facts(live, rates_between(self._look.live.counters, live.counters))

    def _draw(self, choice: LiveChoice) -> None:
        from txnctl.commands.health.top_screen import screen
        from txnctl.commands.health.top_text import text_of

        columns, lines = self._terminal.size()
        self._context.measure(columns)
        key = (choice.opened, self._look, columns)
        if choice.opened is not None and self._text_key != key:
            self._text, self._text_key = text_of(self._context, *choice.opened), key
        self._terminal.draw(screen(self._context, self._look, choice, self._text, lines))
