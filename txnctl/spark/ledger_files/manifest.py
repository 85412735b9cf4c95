"""The manifest of an offloaded topic: which files hold which ledgers. Pure.

A manifest names only files that are complete, and is itself never changed: the next one replaces it. Ledgers are
offloaded when they are closed and decided, so that nothing a manifest says ever stops being true.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from storage.errors import OffloadInvalid, UnknownFormat

if TYPE_CHECKING:
    from storage.topic.log import LedgerInfo

FORMAT = 1
"""Number of the layout: of the manifest, of the file names, and of the columns in the files."""

Span = tuple[tuple[int, int], tuple[int, int]]
"""Entries after the first position, up to and including the second."""


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """Which topic was offloaded: a topic created again and a restored store are others.

    Attributes:
        store: which store, and which incarnation of it, as `Store.identity` says it.
    """

    store: str
    topic_id: int
    topic: str


@dataclass(frozen=True, slots=True)
class OffloadedLedger:
    """A closed ledger as it is in the store: it never changes any more."""

    ledger_id: int
    entries: int
    messages: int
    closed_ms: int | None

    @classmethod
    def of(cls, ledger: LedgerInfo) -> OffloadedLedger:
        """As the store describes it."""
        return cls(ledger.ledger_id, ledger.entries, ledger.messages, ledger.closed_ms)


@dataclass(frozen=True, slots=True)
class FileContent:
    """What was written into one file.

    Attributes:
        aborted: how many of the rows belong to aborted transactions.
        row_groups: the pieces that can be read apart.
        sha256: of the file's bytes, in hex.
    """

    rows: int
    aborted: int
    row_groups: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """One file of neighbouring ledgers."""

    name: str
    content: FileContent
    ledgers: tuple[OffloadedLedger, ...]

    @property
    def after(self) -> tuple[int, int]:
        """The position before the first entry."""
        return (self.ledgers[0].ledger_id, -1)

    @property
    def last(self) -> tuple[int, int]:
        """The last entry."""
        return (self.ledgers[-1].ledger_id, self.ledgers[-1].entries - 1)

    @property
    def through(self) -> tuple[int, int]:
        """The end of its last ledger, as the position before the first entry of the next one: nothing lies between."""
        return (self.ledgers[-1].ledger_id + 1, -1)

    @property
    def rows(self) -> int:
        return self.content.rows

    @property
    def aborted(self) -> int:
        return self.content.aborted

    @property
    def row_groups(self) -> int:
        return self.content.row_groups


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one topic in the order of their ledgers, which do not overlap."""

    identity: TopicIdentity
    files: tuple[LedgerFile, ...] = ()

    @property
    def ledgers(self) -> dict[int, OffloadedLedger]:
        """All offloaded ledgers by their number."""
        return {ledger.ledger_id: ledger for file in self.files for ledger in file.ledgers}

    def with_file(self, file: LedgerFile) -> Manifest:
        """The manifest with one file more; itself where some of its ledgers are in it already."""
        known = self.ledgers
        if any(ledger.ledger_id in known for ledger in file.ledgers):
            return self
        return replace(self, files=tuple(sorted((*self.files, file), key=lambda each: each.after)))

    def encode(self) -> bytes:
        """As JSON, a line a file, so that people can read it and `diff` shows what came."""
        head = json.dumps({"format": FORMAT, **asdict(self.identity)})[:-1]
        files = ",\n".join(json.dumps(_file_fields(file)) for file in self.files)
        return f'{head}, "files": [\n{files}\n]}}\n'.encode()

    @classmethod
    def decode(cls, data: bytes, where: str) -> Manifest:
        """The manifest that was read at `where`.

        Raises:
            UnknownFormat: it was written by a later release.
            OffloadInvalid: it is none.
        """
        try:
            found = json.loads(data)
            number = found["format"]
            if number == FORMAT:
                identity = TopicIdentity(*(found[name] for name in TopicIdentity.__slots__))
                return cls(identity, tuple(_file_of(fields) for fields in found["files"]))
        except (ValueError, KeyError, TypeError) as error:
            raise OffloadInvalid(
                f"{where} is not a manifest of offloaded ledgers: {error!r}",
                hint="Remove the directory it lies in, and offload the topic again.",
            ) from None
        raise UnknownFormat(
            f"{where} has format {number}; this release reads format {FORMAT}",
            hint="Use the release that wrote it, or offload to another place.",
            format=number,
        )


def _file_fields(file: LedgerFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "first": f"{file.after[0]}:0",
        "last": "{}:{}".format(*file.last),
        **asdict(file.content),
        "ledgers": [astuple(ledger) for ledger in file.ledgers],
    }


def _file_of(fields: dict[str, Any]) -> LedgerFile:
    content = FileContent(*(fields[name] for name in FileContent.__slots__))
    return LedgerFile(fields["name"], content, tuple(OffloadedLedger(*each) for each in fields["ledgers"]))


class Spanning(Protocol):
    """A file of entries after one position, up to and including another."""

    @property
    def after(self) -> tuple[int, int]: ...

    @property
    def last(self) -> tuple[int, int]: ...

    @property
    def through(self) -> tuple[int, int]: ...


F = TypeVar("F", bound=Spanning)


def cover(
    after: tuple[int, int], through: tuple[int, int], files: Sequence[F]
) -> list[tuple[F | None, Span]]:
    """The range (after, through] in stretches, in order, each with a file that holds it; None where there is none.

    The stretches follow each other without a gap, whatever the files have in common.
    """
    found: list[tuple[F | None, Span]] = []
    waiting = sorted(files, key=lambda each: each.after, reverse=True)
    furthest: F | None = None
    while after < through:
        while waiting and waiting[-1].after <= after:
            each = waiting.pop()
            if furthest is None or each.last > furthest.last:
                furthest = each
        file = furthest if furthest is not None and furthest.last > after else None
        if file is not None:
            end = min(file.through, through)
        else:
            end = min(waiting[-1].after, through) if waiting else through
        found.append((file, (after, end)))
        after = end
    return found
