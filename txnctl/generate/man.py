"""Man pages in roff: one for each command and group, and `txnctl(1)` for the whole.

Roff interprets a dot or an apostrophe at the start of a line, backslashes anywhere, and turns `-` into a hyphen that
cannot be copied into a shell; `_text` escapes all three. Text in backticks is set in bold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnctl import __version__
from txnctl.cli.click_commands import Command, GroupCommand
from txnctl.cli.exit_codes import MEANINGS
from txnctl.generate.environment import VARIABLES
from txnctl.output.field import KINDS

if TYPE_CHECKING:
    from txnctl.generate.tree import Page


def man_page(page: Page, all_pages: list[Page]) -> str:
    """Return the page of a command."""
    sections = [
        _heading(page),
        _section("NAME", f"{_text(page.file_name)} \\- {_text(page.summary)}"),
        _section("SYNOPSIS", f".B {_text(page.title)}\n{_text(page.usage)}"),
        _section("DESCRIPTION", _description(page)),
        _section("ARGUMENTS", _definitions(page.arguments)),
        _section("COMMANDS", _commands(page, all_pages)),
        _section("OPTIONS", _definitions(page.options(shared=False) + page.options(shared=True))),
        _section("OUTPUT", _fields(page)),
        _section("EXAMPLES", _examples(page)),
    ]
    if len(page.path) == 1:
        sections += [
            _section("ENVIRONMENT", _definitions(list(VARIABLES.items()))),
            _section("EXIT STATUS", _definitions([(str(code), text) for code, text in MEANINGS.items()])),
        ]
    sections.append(_section("SEE ALSO", _see_also(page, all_pages)))
    return "".join(sections)


def _heading(page: Page) -> str:
    # No date: the page must come out the same on every day.
    # No hyphenation and no justification: commands copied from the page must stay intact.
    return f'.TH {page.file_name.upper()} 1 "" "txnctl {__version__}" "txnctl manual"\n.nh\n.ad l\n'


def _section(title: str, body: str) -> str:
    return f".SH {title}\n{body}\n" if body else ""


def _description(page: Page) -> str:
    paragraphs = [_paragraph(paragraph) for paragraph in page.paragraphs]
    if isinstance(page.command, Command):
        paragraphs.append(_text(page.command.effect))
    return "\n.PP\n".join(paragraphs)


def _paragraph(text: str) -> str:
    if text.startswith("\b"):
        lines = "\n".join([_text(line) for line in text.splitlines()[1:]])
        return f".nf\n{lines}\n.fi"
    return _text(" ".join(text.split()))


def _definitions(rows: list[tuple[str, str]]) -> str:
    return "\n".join([f".TP\n.B {_text(name)}\n{_text(text)}" for name, text in rows])


def _commands(page: Page, all_pages: list[Page]) -> str:
    if not isinstance(page.command, GroupCommand):
        return ""
    return "\n".join(
        [
            f".TP\n.BR {_text(member.file_name)} (1)\n{_text(member.summary)}."
            for member in _members(page, all_pages)
        ]
    )


def _fields(page: Page) -> str:
    if not isinstance(page.command, Command) or page.command.declaration.output is None:
        return ""
    output = page.command.declaration.output
    rows = [
        f'.TP\n.BR {_text(field.name)} " " ({_text(KINDS[field.kind])})\n{_text(field.help)}'
        for field in output.fields
    ]
    return "With\n.B \\-o json\nthe result has these fields. Unknown is null.\n" + "\n".join(rows)


def _examples(page: Page) -> str:
    if not isinstance(page.command, Command):
        return ""
    blocks = [
        "\n".join([_text(line, bold=False) for line in example.lines]) for example in page.command.examples
    ]
    return "\n".join([".nf", "\n.sp\n".join(blocks), ".fi"])


def _see_also(page: Page, all_pages: list[Page]) -> str:
    near = [near_page for near_page in all_pages if near_page.path == page.path[:-1]] + _members(
        page, all_pages
    )
    names = [near_page.file_name for near_page in near] or ["txnctl"]
    references = [f".BR {_text(name)} (1)" for name in names]
    if len(page.path) == 1:
        references += [".BR txnctl\\-transactions (7)", ".BR txnctl\\-store (5)"]
    return ",\n".join(references)


def _members(page: Page, all_pages: list[Page]) -> list[Page]:
    return [page_below for page_below in all_pages if page_below.path[:-1] == page.path]


def _text(text: str, *, bold: bool = True) -> str:
    """Escape text so that roff prints it unchanged."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    if bold:
        parts = safe.split("`")
        # An odd number of backticks has no pairs: leave the text unchanged.
        if len(parts) % 2:
            safe = "".join([f"\\fB{part}\\fR" if index % 2 else part for index, part in enumerate(parts)])
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
