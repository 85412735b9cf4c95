"""The manifest of an offloaded topic: which files hold which ledgers. Pure.

A manifest names only complete files, and is never changed: the next manifest replaces it. Ledgers are offloaded when
closed and decided, so that every statement of a manifest stays true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from storage import Position
from storage.errors import OffloadInvalid, UnknownFormat

if TYPE_CHECKING:
    from storage.topic.log import LedgerInfo

FORMAT = 1
"""Version of the format: of the manifest, of the file names, and of the columns in the files."""

Span = tuple[Position, Position]
"""Entries after the first position, up to and including the second."""


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """Identity of an offloaded topic: a topic created again, and a restored store, have a different identity.

    Attributes:
        store: id and incarnation of the store, as in `Store.identity`.
    """

    store: str
    topic_id: int
    topic: str


@dataclass(frozen=True, slots=True)
class OffloadedLedger:
    """A closed ledger of the store, which never changes any more."""

    ledger_id: int
    entries: int
    messages: int
    closed_ms: int | None

    @classmethod
    def of(cls, ledger: LedgerInfo) -> OffloadedLedger:
        """Copy the description of a ledger from the store."""
        return cls(ledger.ledger_id, ledger.entries, ledger.messages, ledger.closed_ms)


@dataclass(frozen=True, slots=True)
class FileContent:
    """Statistics and checksum of one file.

    Attributes:
        aborted: how many rows belong to aborted transactions.
        row_groups: how many row groups, which can be read separately.
        sha256: of the file's bytes, in hex.
    """

    rows: int
    aborted: int
    row_groups: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """A file of neighbouring ledgers."""

    name: str
    content: FileContent
    ledgers: tuple[OffloadedLedger, ...]

    @property
    def after(self) -> Position:
        """The position before the first entry."""
        return Position(self.ledgers[0].ledger_id, -1)

    @property
    def last(self) -> Position:
        """The last entry."""
        return Position(self.ledgers[-1].ledger_id, self.ledgers[-1].entries - 1)

    @property
    def through(self) -> Position:
        """The end of its last ledger, as the position before the first entry of the next ledger."""
        return Position(self.ledgers[-1].ledger_id + 1, -1)

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
    """The files of one topic in the order of their ledgers, without overlap."""

    identity: TopicIdentity
    files: tuple[LedgerFile, ...] = ()

    @property
    def ledgers(self) -> dict[int, OffloadedLedger]:
        """All offloaded ledgers by their number."""
        return {ledger.ledger_id: ledger for file in self.files for ledger in file.ledgers}

    def with_file(self, file: LedgerFile) -> Manifest:
        """Add a file; return self if some of its ledgers are present already."""
        known = self.ledgers
        if any(ledger.ledger_id in known for ledger in file.ledgers):
            return self
        return replace(
            self, files=tuple(sorted((*self.files, file), key=lambda ledger_file: ledger_file.after))
        )

    def encode(self) -> bytes:
        """Encode as JSON with a line per file, so that people can read a manifest and `diff` shows new files."""
        head = json.dumps({"format": FORMAT, **asdict(self.identity)})[:-1]
        files = ",\n".join(json.dumps(_file_fields(file)) for file in self.files)
        return f'{head}, "files": [\n{files}\n]}}\n'.encode()

    @classmethod
    def decode(cls, data: bytes, where: str) -> Manifest:
        """Decode a manifest read from `where`.

        Raises:
            UnknownFormat: a later release wrote the manifest.
            OffloadInvalid: the data is not a manifest.
        """
        try:
            document = json.loads(data)
            number = document["format"]
            if number == FORMAT:
                identity = TopicIdentity(*(document[name] for name in TopicIdentity.__slots__))
                return cls(identity, tuple(_file_of(fields) for fields in document["files"]))
        except (ValueError, KeyError, TypeError) as error:
            raise OffloadInvalid(
                f"{where} is not a manifest of offloaded ledgers: {error!r}",
                hint="Take the file from a copy of the directory. Where the store still has every ledger, remove the "
                "topic's directory and offload the topic again.",
            ) from None
        raise UnknownFormat(
            f"{where} has format {number}; this release reads format {FORMAT}",
            hint="Use a release that reads this format, or offload to another directory.",
            format=number,
        )


def _file_fields(file: LedgerFile) -> Mapping[str, object]:
    return {
        "name": file.name,
        "first": f"{file.after[0]}:0",
        "last": "{}:{}".format(*file.last),
        **asdict(file.content),
        "ledgers": [astuple(ledger) for ledger in file.ledgers],
    }


def _file_of(fields: Mapping[str, Any]) -> LedgerFile:
    content = FileContent(*(fields[name] for name in FileContent.__slots__))
    return LedgerFile(
        fields["name"], content, tuple(OffloadedLedger(*ledger) for ledger in fields["ledgers"])
    )


class Spanning(Protocol):
    """A file of entries after one position, up to and including another."""

    @property
    def after(self) -> Position: ...

    @property
    def last(self) -> Position: ...

    @property
    def through(self) -> Position: ...


F = TypeVar("F", bound=Spanning)


def cover(after: Position, through: Position, files: Sequence[F]) -> list[tuple[F | None, Span]]:
    """Split the range (after, through] into stretches, in order, each with the file that holds it; None for no file.

    The stretches join without a gap, even where files overlap.
    """
    stretches: list[tuple[F | None, Span]] = []
    pending = sorted(files, key=lambda candidate: candidate.after, reverse=True)
    furthest: F | None = None
    while after < through:
        while pending and pending[-1].after <= after:
            candidate = pending.pop()
            if furthest is None or candidate.last > furthest.last:
                furthest = candidate
        file = furthest if furthest is not None and furthest.last > after else None
        if file is not None:
            end = min(file.through, through)
        else:
            end = min(pending[-1].after, through) if pending else through
        stretches.append((file, (after, end)))
        after = end
    return stretches
