"""Declaration: `txnctl/cli/declaration.py`."""

from __future__ import annotations

from txnctl.cli.context import Context
from txnctl.cli.declaration import Declaration, command, declaration_of
from txnctl.cli.decorators import (
    argument,
    example,
    option,
)


class TestDeclarations:
    """Decorators note, in the order in which they are read."""

    def test_parameters_and_examples_keep_their_order(self) -> None:
        """From the top down."""

        @command
        @argument("first", help="1.")
        @option("--second", help="2.")
        @example("a")
        @example("b", "c", setup="d", exit_code=3)
        def probe(context: Context, first: str, second: str) -> None:
            """Probe."""

        declaration = declaration_of(probe)
        assert isinstance(declaration, Declaration)
        assert [names for _, names, _ in reversed(declaration.parameters)] == [("first",), ("--second",)]
        assert [(each.lines, each.setup, each.exit_code) for each in declaration.examples] == [
            (("a",), (), 0),
            (("b", "c"), ("d",), 3),
        ]
        assert probe.__name__ == "probe"
