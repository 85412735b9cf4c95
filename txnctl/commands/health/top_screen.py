"""How `txnctl top` is laid out: a function of the facts, the choices and the size of the terminal.

From the top: store and verdict, problems, rates, the parts of the store, a table, keys. Where there is little room,
parts go in the order of their ranks (`txnctl/output/room.py`): the verdict, the worst problems and a row of the table
stay.
"""

from __future__ import annotations

from typing import NamedTuple

from txnctl.commands.health.status_screen import VERDICT_STYLES, fact_texts, headline
from txnctl.commands.health.top_choice import PROBLEMS
from txnctl.commands.health.top_tables import TABLES, rate_text, rows_of
from txnctl.output.prose import wrapped
from txnctl.output.room import ScreenPart, share, window
from txnctl.output.screen import VERDICT_STYLES as SUBSCRIPTION_STYLES, alarmed
from txnctl.output.styled import clipped, segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from storage.reports.finding import Finding
    from storage.reports.live import LiveFacts, Rates
    from txnctl.cli.context import Context
    from txnctl.commands.health.top_choice import LiveChoice

KEYS = "Enter explain  Tab next  s sort  / filter  ? help  q quit"
_KEYS_SHORT = "Enter Tab 1-4 s r / ? q"
_KEYS_OF_TEXT = "Esc back  arrows, PgUp, PgDn scroll  q quit"
_KEYS_OF_TEXT_SHORT = "Esc back  Up Down scroll  q"
_KEYS_OF_FILTER = "Enter keep  Esc drop"
HELP = (
    "  Up, Down      choose a row, scroll a text (also k, j)",
    "  PgUp, PgDn    the same by screens (also Space); Home, End",
    "  Enter         explain the chosen row, with the command to paste",
    "  Esc           go back; drop the filter",
    "  Tab           next table; 1 problems, 2 topics, 3 transactions, 4 consumers",
    "  s             sort by another column; at first rows that need attention",
    "  r             sort backwards",
    "  /             show only rows with a text",
    "  q, Ctrl-C     leave; Ctrl-Z stops, fg goes on",
    "",
    "IN/S and OUT/S are messages appended and delivered in a second, since the last look.",
    "An abort counts once for each topic with messages of the transaction. Conflicts are those over keys of tables.",
)
_ROW_WIDTH = 60
"""Columns that a row of a table needs for one line."""
_MARK = "> "
_NO_MARK = "  "
_REVERSED = "\x1b[7m"
_END = "\x1b[0m"
_ALARMS = (
    ("ORPHANED", "bold", "red"),
    ("OVERDUE", "bold", "red"),
    ("stopped", "bold", "red"),
    *((word, *styles) for word, styles in SUBSCRIPTION_STYLES.items() if word not in ("ok", "stopped")),
)


class LiveLook(NamedTuple):
    """The facts of one look, harmless on a terminal, the rates since the look before, and the rows of all tables."""

    live: LiveFacts
    rates: Rates | None
    rows: tuple[list[Any], ...]

    @classmethod
    def from_facts(cls, live: LiveFacts, rates: Rates | None) -> LiveLook:
        """The look, with stored texts made harmless."""
        from txnctl.output.escape import printable_row

        harmless = live._replace(
            overview=printable_row(live.overview), transactions=printable_row(live.transactions)
        )
        return cls(harmless, rates, rows_of(harmless, rates))


def screen(
    context: Context, look: LiveLook, choice: LiveChoice, text: Sequence[str], height: int
) -> list[str]:
    """The lines of the screen, at most the height, none wider than the terminal.

    Args:
        context: gives the width.
        text: that of the opened row.
    """
    width = context.width or 80
    if choice.shows_help or choice.opened is not None:
        lines = _text_screen(context, look, choice, text, height)
    else:
        lines = _tables_screen(context, look, choice, height)
    return [clipped(line, width) for line in lines]


def _head(context: Context, look: LiveLook) -> list[str]:
    overview = look.live.overview
    facts = overview.facts
    first = headline(context, facts.store.info.path, facts.as_of_at_ms, overview.verdict, overview.findings)
    return first.split("\n")[:1]


def _text_screen(
    context: Context, look: LiveLook, choice: LiveChoice, text: Sequence[str], height: int
) -> list[str]:
    """The opened row, or the keys, scrolled."""
    width = context.width or 80
    lines = [part for line in HELP for part in wrapped(line, width)] if choice.shows_help else list(text)
    keys = _KEYS_OF_TEXT if len(_KEYS_OF_TEXT) <= width else _KEYS_OF_TEXT_SHORT
    head, foot = _head(context, look), [context.style(keys, "dim")]
    above, within, below = share(
        [ScreenPart(1, 1, 1), ScreenPart(0, 1, max(1, height)), ScreenPart(2, 1, 1)], height
    )
    choice.page = max(1, within - 1)
    most = max(0, len(lines) - within)
    if choice.shows_help:
        start = choice.help_offset = min(choice.help_offset, most)
    else:
        start = choice.offset = min(choice.offset, most)
    shown = lines[start : start + within]
    return [*head[:above], *shown, *[""] * (within - len(shown)), *foot[:below]]


def _tables_screen(context: Context, look: LiveLook, choice: LiveChoice, height: int) -> list[str]:
    findings = look.live.overview.findings
    facts = [f"  {name:<13}  {text}" for name, text in fact_texts(look.live.overview.facts)]
    rows = choice.arranged(choice.body, look.rows[choice.body])
    table_height = 2 + max(1, len(rows)) * (1 if (context.width or 80) >= _ROW_WIDTH else 2)
    # Head, rates and keys take a line each.
    left = height - 3 - len(facts) - table_height
    parts = [
        ScreenPart(0, 1, 1),
        ScreenPart(1, 1, max(1, _problem_height(context, findings, max(3, height // 3, left)))),
        ScreenPart(4, 1, 1),
        ScreenPart(6, 0, len(facts)),
        ScreenPart(3, 3, table_height),
        ScreenPart(2, 1, 1),
    ]
    drawn: list[Callable[[int], list[str]]] = [
        lambda _: _head(context, look),
        lambda lines: _problem_lines(context, findings, choice, lines),
        lambda _: [_rates_line(look.rates, context.width or 80)],
        lambda lines: facts[:lines] if lines == len(facts) else [],
        lambda lines: _table_lines(context, look, choice, rows, lines),
        lambda _: [_foot(context, choice)],
    ]
    heights = share(parts, height)
    above = [line for draw, lines in zip(drawn[:-1], heights, strict=False) if lines for line in draw(lines)]
    below = drawn[-1](1) if heights[-1] else []
    return [*above, *[""] * (height - len(above) - len(below)), *below]


def _problem_height(context: Context, findings: Sequence[Finding], most: int) -> int:
    """The lines for the findings: all of them whole, else cut, else as many as there may be.

    Args:
        most: a third of the screen, or the lines that all other parts leave.
    """
    whole = sum(map(len, _whole_problems(context, findings)))
    return whole if whole <= most else min(len(findings), most)


def _problem_lines(
    context: Context, findings: Sequence[Finding], choice: LiveChoice, height: int
) -> list[str]:
    """The findings, the worst first; the chosen one is marked and stays on the screen. Where all fit, none is cut."""
    if not findings:
        return [f"{_NO_MARK}{context.style('Nothing is wrong.', 'green')}"]
    whole = _whole_problems(context, findings)
    fits = sum(map(len, whole)) <= height
    problems = whole if fits else [[_problem_line(context, finding)] for finding in findings]
    number, is_chosen = choice.number(PROBLEMS, findings), choice.table == PROBLEMS
    room = len(problems) if fits or height == 1 else height - 1
    first = window(len(problems), number, room) if is_chosen and not fits else 0
    if is_chosen:
        choice.page = max(1, min(room, height))
    shown = [
        _chosen(line) if is_chosen and at == number else _NO_MARK + line
        for at, lines in enumerate(problems)
        for line in lines
        if at >= first
    ]
    if fits or height == 1:
        return shown[:height]
    left_out = len(problems) - room
    return [*shown[:room], f"{_NO_MARK}and {left_out:,} more problem{'' if left_out == 1 else 's'}"]


def _whole_problems(context: Context, findings: Sequence[Finding]) -> list[list[str]]:
    """The lines of each finding at the width."""
    width = (context.width or 80) - len(_NO_MARK)
    return [wrapped(_problem_line(context, finding), width, hanging=2) for finding in findings]


def _problem_line(context: Context, finding: Finding) -> str:
    return f"{_severity(context, finding)} {finding.what}"


def _severity(context: Context, finding: Finding) -> str:
    mark = "i" if finding.severity == "info" else "!"
    return context.style(mark, *VERDICT_STYLES[finding.severity])


def _rates_line(rates: Rates | None, width: int) -> str:
    """`in 1,203/s  out 1,180/s  commits 55/s`, as many as fit."""
    named: tuple[tuple[str, float | None], ...] = (
        ("in", None if rates is None else sum(rates.messages_in.values())),
        ("out", None if rates is None else sum(rates.messages_out.values())),
        ("commits", None if rates is None else rates.commits),
        ("aborts", None if rates is None else sum(rates.aborts.values())),
        ("conflicts", None if rates is None else rates.conflicts),
    )
    line = _NO_MARK
    for name, rate in named:
        text = f"{name} {rate_text(rate)}/s"
        joined = f"{line}{'' if line == _NO_MARK else '   '}{text}"
        line = joined if len(joined) <= width else line
    return line


def _table_lines(
    context: Context, look: LiveLook, choice: LiveChoice, rows: Sequence[Any], height: int
) -> list[str]:
    """The line of tables, and the rows around the chosen one."""
    declared, top = TABLES[choice.body], _tabs(context, look, choice)
    if not rows:
        nothing = "none with this text" if look.rows[choice.body] else "none"
        return [top, _NO_MARK + nothing][:height]
    number, room = choice.number(choice.body, rows), max(1, height - 2)
    while True:
        first = window(len(rows), number, room)
        table = alarmed(
            context, context.table_of(rows[first : first + room], declared.columns, indent=2), _ALARMS
        )
        fitting = max(1, (height - 1 - len(table.headings)) // max(map(len, table.rows)))
        if fitting >= min(room, len(table.rows)):
            break
        room = fitting
    if choice.table != PROBLEMS:
        choice.page = room
    lines = [top, *[context.style(_NO_MARK + line, "dim") for line in table.headings]]
    for at, row in enumerate(table.rows, first):
        is_chosen = at == number and choice.table == choice.body
        lines += [_chosen(line) if is_chosen else _NO_MARK + line for line in row]
    return lines[:height]


def _chosen(line: str) -> str:
    """The line as the chosen one: marked, and in reverse, without colours of its own."""
    return f"{_REVERSED}{_MARK}{''.join([text for text, _ in segments(line)])}{_END}"


def _tabs(context: Context, look: LiveLook, choice: LiveChoice) -> str:
    """`1 problems 3  2 topics 12  3 transactions 5  4 consumers 9  by attention`, the current one bold."""
    width = context.width or 80
    counts = [len(rows) for rows in look.rows]
    counts[2] = look.live.overview.facts.transactions.open
    after = f"by {choice.order_name(choice.body)}" + (f", with {choice.filter!r}" if choice.filter else "")
    for form in (
        "{number} {table.name} {count:,}",
        "{number} {table.short} {count:,}",
        "{number} {table.short}",
    ):
        names = [form.format(number=at + 1, table=table, count=counts[at]) for at, table in enumerate(TABLES)]
        if sum(map(len, names)) + 2 * len(names) <= width:
            break
    else:
        names = [f"{choice.body + 1} {TABLES[choice.body].short} {counts[choice.body]:,}"]
    shown = [
        context.style(name, "bold", "cyan") if name.startswith(str(choice.table + 1)) else name
        for name in names
    ]
    line = "  ".join(shown)
    return f"{line}  {context.style(after, 'dim')}"


def _foot(context: Context, choice: LiveChoice) -> str:
    width = context.width or 80
    if choice.is_typing:
        return f"/{choice.filter}_  {context.style(_KEYS_OF_FILTER, 'dim')}"
    return context.style(KEYS if len(KEYS) <= width else _KEYS_SHORT, "dim")
