"""Values of the JSON that are not compared; paths and pids made the same on every machine."""

from __future__ import annotations

import re
from typing import Any

SENTENCES = {
    "because",  # of advice, and of admission
    "hint",
    "remedy",
    "holder",  # a process in words
    "meaning",
    "message",
    "plan",  # of a confirmation
    "problems",
    "refused",
    "what",
    "why",
}
"""Fields whose text is a sentence for people: a text stays a text and null stays null, the words are free."""

UNSTEADY = {
    "checksum",  # over all records of a store, with paths of this run
    "elapsedMs",  # measured with the processor's own clock
    "inUseBytes",
    "freeBytes",
    "usedBytes",  # pages of the data file: the order of writes within a batch decides how pages split
}
"""Fields whose value is of the moment, or of LMDB's pages: the type is compared."""

NUMBERS_OF_COMMITS = {"commit", "commits"}
"""Fields of which the type is compared: how many store transactions a command takes is no part of its answer."""

FREE: dict[str, set[str]] = {
    "demo": {
        "caughtUpMs",
        "name",
        "pid",
        "store",
    },  # the processes live on the real machine; names of checks are sentences
    "doctor": {"version"},  # of the programs that only pipelines need
    "version": {"click", "lmdb", "msgpack", "python", "tabulate", "txnctl"},
}
"""First word of a command -> fields that depend on what is installed: neither value nor type is compared."""

READERS = {"readers", "readersInUse"}
"""Not compared while a second process may read at any moment."""

SENTENCE = "(a sentence)"

_USED_BYTES = re.compile(r"(?<=_use_bytes |used_bytes )\d+")
_PROCESS = re.compile(r"(?<=process )\d+")


class Mask:
    """Makes the JSON of one run the same on every machine.

    Attributes:
        home: the directory of all stores; `/golden` takes its place.
        fake_of: real pid -> the pid shown in its place.
    """

    def __init__(self, home: str, fake_of: dict[int, int]) -> None:
        self.home = home
        self.fake_of = fake_of

    def text(self, text: str) -> str:
        """The text without this run's directory and pids."""
        found = _USED_BYTES.sub("", text.replace(self.home, "/golden"))
        return _PROCESS.sub(lambda number: str(self.fake_of.get(int(number[0]), number[0])), found)

    def name(self, line: str) -> str:
        """One line of `-o name`, which may be a pid."""
        return str(self.fake_of.get(int(line), line)) if line.isdecimal() else self.text(line)

    def value(self, value: Any, free: set[str], field: str = "") -> Any:
        """A value of JSON; `free` names more fields of this case, which are not compared."""
        if field in free:
            return "(free)"
        if isinstance(value, dict):
            return {self.text(name): self.value(member, free, name) for name, member in value.items()}
        if isinstance(value, list):
            return [self.value(member, free, field) for member in value]
        if isinstance(value, str):
            return SENTENCE if field in SENTENCES else self.text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return 0 if field in UNSTEADY else self._number(value, field)
        return value

    def _number(self, value: int, field: str) -> int:
        return self.fake_of.get(value, value) if field == "pid" else value


def difference(wanted: Any, found: Any, at: str = "") -> str | None:
    """Where two values of JSON first differ in keys, order of keys, types or values; None where nowhere."""
    if type(wanted) is not type(found):
        return f"{at}: {wanted!r} was wanted, {found!r} found"
    if isinstance(wanted, dict):
        if list(wanted) != list(found):
            return f"{at}: keys {list(wanted)} were wanted, {list(found)} found"
        steps = [(f"{at}.{name}", wanted[name], found[name]) for name in wanted]
    elif isinstance(wanted, list):
        if len(wanted) != len(found):
            return f"{at}: {len(wanted)} members were wanted, {len(found)} found"
        steps = [(f"{at}[{index}]", *pair) for index, pair in enumerate(zip(wanted, found, strict=True))]
    elif at.rpartition(".")[2] in NUMBERS_OF_COMMITS:
        return None
    else:
        return None if wanted == found else f"{at}: {wanted!r} was wanted, {found!r} found"
    return next((told for step in steps if (told := difference(step[1], step[2], step[0]))), None)
