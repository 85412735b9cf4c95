"""The layout of help texts: `txnctl/cli/help_formatter.py`."""

from __future__ import annotations

import pytest

from txnctl.cli.help_formatter import HelpFormatter


def text(words: str, width: int = 40) -> str:
    """A paragraph of help, indented as under a usage line."""
    formatter = HelpFormatter(width=width)
    with formatter.indentation():
        formatter.write_text(words)
    return formatter.getvalue()


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("See `txnctl topics log orders` there.", ["  See `txnctl topics log orders` there."]),
        (
            "Look at what `txnctl topics log orders` has.",
            ["  Look at what", "  `txnctl topics log orders` has."],
        ),
        ("The error is one of those (`topic-full`).", ["  The error is one of those", "  (`topic-full`)."]),
        ("a\nb\n\nc", ["  a b", "", "  c"]),
        ("\b\nkept   as\n  it is", ["  kept   as", "    it is"]),
        (
            "    txnctl store copy bank.store 'other store' --dry-run",
            ["      txnctl store copy bank.store \\", "        'other store' --dry-run"],
        ),
    ],
)
def test_a_command_is_never_broken_as_prose_is(words: str, lines: list[str]) -> None:
    """It goes to the next line as a whole, or a backslash ends the line."""
    assert text(words).rstrip("\n").split("\n") == lines


def test_a_definition_stands_beside_its_label_or_below() -> None:
    """Below where a word of it is wider than the place beside, and from the next line on where the label is."""
    formatter = HelpFormatter(width=40)
    with formatter.indentation():
        formatter.write_dl([
            ("-q", "No notes, progress or summary at all."),
            ("--lock-timeout DURATION", "How long."),
            ("--store", "A directory or postgresql://user@host/db?store=N."),
        ])  # fmt: skip
    assert formatter.getvalue().rstrip("\n").split("\n") == [
        "  -q             No notes, progress or",
        "                 summary at all.",
        "  --lock-timeout DURATION",
        "                 How long.",
        "  --store",
        "      A directory or",
        "      postgresql://user@host/db?store=N.",
    ]
