"""Value types of retention limits: a duration or a size, or a word in its place."""

from __future__ import annotations

from txnctl.cli.value_types import DURATION_MS, SIZE, Grammar


class Limit(Grammar):
    """A number in the form of another type, or one of some words."""

    def __init__(self, number: Grammar, words: tuple[str, ...]) -> None:
        self._number = number
        self._words = words
        self.name = number.name
        self.sample = number.sample
        self.expected = f"{number.expected}; or {' or '.join(words or ('0',))}"

    def read(self, text: str) -> int | str | None:
        """The word, the number, or None."""
        if text in self._words:
            return text
        number = 0 if text == "0" else self._number.read(text)
        return number if isinstance(number, int) else None

    def objection(self, text: str) -> str:
        """As of the number."""
        return self._number.objection(text)


class HardRetention(Grammar):
    """The effect of limits on messages that are not acknowledged."""

    name = "effect"
    sample = "trim"

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = ("off", "trim", "refuse", *words)
        self.expected = " or ".join(self.words)

    def read(self, text: str) -> str | None:
        """The word, or None."""
        return text if text in self.words else None


_OF_TOPIC = ("unset", "store")
RETENTION_TIME = Limit(DURATION_MS, _OF_TOPIC)
RETENTION_SIZE = Limit(SIZE, _OF_TOPIC)
TOMBSTONE_RETENTION = Limit(DURATION_MS, ())
COMPACTION_THRESHOLD = Limit(SIZE, ("unset",))
STORE_RETENTION_TIME = Limit(DURATION_MS, ("unset",))
STORE_RETENTION_SIZE = Limit(SIZE, ("unset",))
RETENTION_HARD = HardRetention(("store",))
STORE_RETENTION_HARD = HardRetention(())
