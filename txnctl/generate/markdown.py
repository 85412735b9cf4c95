"""docs/CLI.md: the whole command line on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnctl.cli.aliases import ALIASES
from txnctl.cli.click_commands import Command, GroupCommand
from txnctl.cli.exit_codes import MEANINGS
from txnctl.generate.environment import VARIABLES
from txnctl.output.field import KINDS

if TYPE_CHECKING:
    from txnctl.cli.declaration import Example
    from txnctl.generate.tree import Page

_INTRODUCTION = """<!-- Made from the command tree by `make generate`; a test fails where it is stale. -->

# The command line

Results go to standard output and nothing else does: notes, progress, prompts, warnings and errors go to standard
error. `-o table|wide|json|ndjson|name` chooses the format, `-o help` lists the fields of a result, `--json-schema`
prints their JSON Schema. JSON of one named thing is an object, of a list an array; NDJSON is one object a line. Fields
are only ever added; unknown is `null`.

On a terminal no line is wider than the terminal: where a table has no room, what every row says stands above it, and a
line below it names the columns that are not shown; `-o wide` shows all, one line a row. Prose is wrapped, and a name or
key that is wider than a line is cut in the middle: `settlements-of-…-attempt`. A command line to paste breaks with a
backslash between words; a word that is wider than the terminal stays whole there, as a cut name would name nothing.
Tables fold names, and `-o json` and `-o name` cut and fold nothing. In a pipe or a file a table has all columns, and no
line is broken or cut.

Durations are `500ms 30s 15m 2h 1d`; positions `earliest`, `latest`, `L:E`, `L:E:B`; ranges `A..B`, `-N` (the last N),
`@TIME`, as `@2h` ago. Named constants are accepted as `READ_COMMITTED`, `read-committed` and `read_committed`.

A command line that a run shows, as `Next:`, `Run:`, in a hint or in JSON, can be pasted: where `--store` named the
store, the line names the store too.
"""

_ERRORS = """With `-o json` or `ndjson` an error is one JSON object on standard error, with `code` (a stable word, see
`txnctl errors list`), `exitCode`, `message`, `hint`, `retryable` and `details`.
"""


def cli_page(all_pages: list[Page]) -> str:
    """Return the page."""
    root, *members = all_pages
    parts = [_INTRODUCTION, _aliases(), _contents(members), _options_of_all(root)]
    parts.append("## Environment\n\n" + _rows("Variable", list(VARIABLES.items())))
    parts.append(
        "## Exit codes\n\n"
        + _rows("Code", [(str(code), text) for code, text in MEANINGS.items()])
        + "\n"
        + _ERRORS
    )
    parts += [_chapter(page) for page in members]
    return "\n".join(parts)


def _aliases() -> str:
    names = ", ".join([f"`{alias}` is `{name}`" for alias, name in ALIASES.items()])
    return f"Short names: {names}.\n"


def _contents(members: list[Page]) -> str:
    lines = []
    for page in members:
        indent = "  " * (len(page.path) - 2)
        lines.append(f"{indent}- [{page.title}](#{page.file_name}): {page.summary}.")
    return "\n".join(lines) + "\n"


def _options_of_all(root: Page) -> str:
    return (
        "## Options before the verb, or after it\n\n"
        + _rows("Option", root.options(shared=True))
        + "\nWhere one is given twice, the last one counts.\n"
    )


def _chapter(page: Page) -> str:
    mark = "#" * len(page.path)
    parts = [f"{mark} {page.title}", *[_paragraph(paragraph) for paragraph in page.paragraphs]]
    if isinstance(page.command, GroupCommand):
        return "\n\n".join(parts) + "\n"
    assert isinstance(page.command, Command)
    parts.append(f"*{page.command.effect}*")
    parts.append(f"```\n{page.title} {page.usage}\n```")
    if page.arguments:
        parts.append(_rows("Argument", page.arguments).rstrip())
    parts.append(_rows("Option", page.options(shared=False) + _particular(page)).rstrip())
    parts.append(_fields(page.command))
    parts.append("\n".join(["```sh", *_lines(page.command.examples), "```"]))
    return "\n\n".join([part for part in parts if part]) + "\n"


def _particular(page: Page) -> list[tuple[str, str]]:
    """Return the shared options, without those of every command, which stand once at the top of the page."""
    everywhere = ("--store", "--color", "--debug", "-h")
    return [row for row in page.options(shared=True) if not row[0].startswith(everywhere)]


def _fields(command: Command) -> str:
    output = command.declaration.output
    if output is None:
        return ""
    names = ", ".join([f"`{field.name}` ({KINDS[field.kind]})" for field in output.fields])
    return f"Fields: {names}."


def _lines(examples: list[Example]) -> list[str]:
    return [line for example in examples for line in example.lines]


def _paragraph(text: str) -> str:
    if text.startswith("\b"):
        return "\n".join(["```", *text.splitlines()[1:], "```"])
    return text


def _rows(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    cells = [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in rows]
    return "\n".join([f"| {title} | |", "| --- | --- |", *cells]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
