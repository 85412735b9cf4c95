"""Hints: sentences that name calls of the API, which every front end words in its own way.

The engine knows no command line. A hint for the shell is the same hint with the commands of `txnctl/output/shell.py` in
place of the calls.
"""

from __future__ import annotations

import os


class Action:
    """A call for the reader of a hint to make: `Action("store.create_topic", "orders")`.

    `call` is the path of a method from an object of docs/API.md, or the bare name of a method where the sentence has
    named the object before. Three actions are no calls of the engine: `resume_process` sends SIGCONT to a process,
    `inspect_process` shows it in the process table, `terminate_session` ends a session of a server.
    """

    __slots__ = ("arguments", "call", "options")

    def __init__(self, call: str, *arguments: object, **options: object) -> None:
        self.call = call
        self.arguments = arguments
        self.options = [Keyword(name, value) for name, value in options.items()]

    def __str__(self) -> str:
        arguments = [_literal(argument) for argument in self.arguments]
        return f"{self.call}({', '.join([*arguments, *map(str, self.options)])})"


def resume(pid: int | None, host: str | None = None) -> Action:
    """Continue a stopped process, on the host of the process."""
    return Action("resume_process", pid, **_elsewhere(host))


def inspect(pid: int | None, host: str | None = None) -> Action:
    """Show a process in the process table of the host of the process."""
    return Action("inspect_process", pid, **_elsewhere(host))


def is_elsewhere(host: str | None) -> bool:
    """Whether a host is named, and is not this one."""
    return host not in (None, os.uname().nodename)


def _elsewhere(host: str | None) -> dict[str, object]:
    return {"host": host} if is_elsewhere(host) else {}


class Keyword:
    """A keyword argument of a call, for sentences about the argument; without a value the name alone."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: object = None) -> None:
        self.name = name
        self.value = value

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={_literal(self.value)}"


class Hint(str):
    """A sentence with actions and keywords: `Hint("Wait, or use {}.", Keyword("force", True))`.

    As a string the hint names calls of the API. Template and parts let a front end word the parts in its own way.
    """

    __slots__ = ("parts", "template")
    template: str
    parts: tuple[object, ...]

    def __new__(cls, template: str, *parts: object) -> Hint:
        """Fill a template of `str.format` with parts."""
        hint = super().__new__(cls, template.format(*parts))
        hint.template, hint.parts = template, parts
        return hint

    def __reduce__(self) -> tuple[object, ...]:
        return Hint, (self.template, *self.parts)


def _literal(value: object) -> str:
    """A value in Python's notation; ids, names and positions as text."""
    return repr(value if isinstance(value, int | bytes) else str(value))
