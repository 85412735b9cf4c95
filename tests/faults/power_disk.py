"""A disk that loses power: what is certainly on it, what may be, and the states that a cut may leave.

A write is certain after an fsync or fdatasync of its file, or at once through a descriptor that waits for the disk
(O_DSYNC). Until then any part of it may be there or not, in sectors of 512 bytes, whatever was written before or after.
The name of a file is certain after an fsync of its directory, and of nothing else. Names that are not certain may be
there in any combination; a rename is there or not.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tests.faults.power_record import Event

SECTOR: Final = 512
PAGE: Final = 4096


class Change(NamedTuple):
    """A change of a file that may be lost: bytes at an offset, or a new length (`data` None)."""

    offset: int
    data: bytes | None


class File:
    """A file: its certain bytes, and the changes since."""

    def __init__(self) -> None:
        self.certain = bytearray()
        self.pending: list[Change] = []

    def flush(self, count: int | None = None) -> None:
        """Make the oldest `count` changes certain; all where None."""
        count = len(self.pending) if count is None else count
        for change in self.pending[:count]:
            apply(self.certain, change)
        del self.pending[:count]


class Directory:
    """A directory: its certain names."""

    def __init__(self) -> None:
        self.certain: dict[str, Node] = {}


Node = File | Directory


class Naming(NamedTuple):
    """A change of names: remove those, then add those; each a directory and a name."""

    removed: tuple[tuple[Directory, str], ...]
    added: tuple[tuple[Directory, str, Node], ...]

    def concerns(self, directory: Directory) -> bool:
        return any(each[0] is directory for each in (*self.removed, *self.added))

    def apply(self, names: Callable[[Directory], dict[str, Node]]) -> None:
        """Change the names of directories."""
        for directory, name in self.removed:
            names(directory).pop(name, None)
        for directory, name, node in self.added:
            names(directory)[name] = node


class Disk:
    """The part of a disk below one directory.

    Args:
        root: the path of the directory in the record.
        keeps_flushes: False for a disk that reports flushes as done and ignores them.
        writes_back: changes of a file that may be on their way; older ones have been written back. None for any number.
    """

    def __init__(self, root: str, *, keeps_flushes: bool = True, writes_back: int | None = None) -> None:
        self.root = root
        self.top = Directory()
        self._keeps_flushes = keeps_flushes
        self._writes_back = writes_back
        self._now: dict[int, dict[str, Node]] = {}
        self._inodes: dict[int, Node] = {}
        self.namings: list[Naming] = []

    def take(self, event: Event) -> Iterator[None]:
        """Let an event happen; stop at each moment at which a power cut finds something else."""
        if event.kind == "W" and event.inode in self._inodes:
            file = self._inodes[event.inode]
            assert isinstance(file, File)
            file.pending.append(Change(event.offset, event.data))
            yield
            if event.is_synchronous and self._keeps_flushes:
                apply(file.certain, file.pending.pop())
                yield
            elif self._writes_back is not None and len(file.pending) > self._writes_back:
                file.flush(1)
        elif event.kind in "TA" and event.inode in self._inodes:
            file = self._inodes[event.inode]
            assert isinstance(file, File)
            if event.kind == "T" or event.flags == 0:
                shrinks_or_sets = event.kind == "T"
                length = event.offset if shrinks_or_sets else max(event.offset, len(self.content(file)))
                file.pending.append(Change(length, None))
            yield
        elif event.kind == "S":
            self._sync(event)
            yield
        elif event.kind == "M" or (event.paths and self._name(event)):
            yield

    def _sync(self, event: Event) -> None:
        node = self._inodes.get(event.inode)
        if node is None or not self._keeps_flushes:
            return
        if isinstance(node, File):
            node.flush()
            return
        for naming in [each for each in self.namings if each.concerns(node)]:
            naming.apply(lambda directory: directory.certain)
            self.namings.remove(naming)

    def _name(self, event: Event) -> bool:
        places = [self._place(path) for path in event.paths]
        if event.paths[0] == self.root:
            self._inodes[event.inode] = self.top
            return False
        at = places[0]
        if event.kind == "R" and at is not None and places[1] is not None:
            node = self._names(at[0])[at[1]]
            return self._change(Naming((at,), ((*places[1], node),)))
        if at is None:
            return False
        if event.kind == "U":
            return self._change(Naming((at,), ()))
        if event.kind == "D":
            return self._change(Naming((), ((*at, Directory()),)))
        if event.kind == "O":
            return self._open(event, *at)
        raise ValueError(f"an event of kind {event.kind} below {self.root}")

    def _open(self, event: Event, directory: Directory, name: str) -> bool:
        node = self._names(directory).get(name)
        if node is not None:
            self._inodes[event.inode] = node
            if event.flags & os.O_TRUNC and isinstance(node, File):
                node.pending.append(Change(0, None))
                return True
            return False
        assert event.flags & os.O_CREAT, f"{event.paths[0]} was never made"
        made = self._inodes[event.inode] = File()
        return self._change(Naming((), ((directory, name, made),)))

    def _place(self, path: str) -> tuple[Directory, str] | None:
        """The directory and the name that a path leads to; None outside of the root."""
        if not path.startswith(self.root + os.sep):
            return None
        *above, name = path.removeprefix(self.root + os.sep).split(os.sep)
        directory = self.top
        for part in above:
            found = self._names(directory)[part]
            assert isinstance(found, Directory)
            directory = found
        return directory, name

    def _names(self, directory: Directory) -> dict[str, Node]:
        """The names that processes see."""
        return self._now.setdefault(id(directory), dict(directory.certain))

    def _change(self, naming: Naming) -> bool:
        naming.apply(self._names)
        self.namings.append(naming)
        if self._writes_back is not None and len(self.namings) > self._writes_back:
            self.namings.pop(0).apply(lambda directory: directory.certain)
        return True

    @staticmethod
    def content(file: File) -> bytearray:
        """The bytes that processes see."""
        bytes_ = bytearray(file.certain)
        for change in file.pending:
            apply(bytes_, change)
        return bytes_

    def state(self, choice: Choice) -> dict[str, bytes | None]:
        """What a cut leaves: the content of each path, None for a directory."""
        names: dict[int, dict[str, Node]] = {}

        def of(directory: Directory) -> dict[str, Node]:
            return names.setdefault(id(directory), dict(directory.certain))

        for naming in choice.some(self.namings):
            naming.apply(of)
        left: dict[str, bytes | None] = {}

        def walk(directory: Directory, above: str) -> None:
            for name, node in sorted(of(directory).items()):
                path = os.path.join(above, name)
                if isinstance(node, Directory):
                    left[path] = None
                    walk(node, path)
                else:
                    left[path] = bytes(choice.content(node))

        walk(self.top, "")
        return left


def apply(content: bytearray, change: Change) -> None:
    """Change the bytes of a file."""
    end = change.offset + len(change.data or b"")
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if change.data is None:
        del content[change.offset :]
    else:
        content[change.offset : end] = change.data


class Choice:
    """A way in which changes are lost: by `kind`, and by chance.

    Kinds: `all` arrived, `none` did, a `prefix` (the last one torn), a `subset` of whole writes, of `pages`, of
    `sectors`, or all but one, of which `one` loses sectors.
    """

    KINDS: Final = ("all", "none", "prefix", "subset", "pages", "sectors", "one")

    def __init__(self, kind: str, chance: random.Random) -> None:
        self.kind = kind
        self._chance = chance

    def some(self, namings: list[Naming]) -> list[Naming]:
        """The changes of names that arrived."""
        if self.kind in ("all", "none"):
            return namings if self.kind == "all" else []
        if self.kind in ("prefix", "one"):
            return namings[: self._chance.randint(0, len(namings))]
        return [each for each in namings if self._chance.random() < 0.5]

    def content(self, file: File) -> bytearray:
        """The bytes of a file after the cut."""
        content = bytearray(file.certain)
        count = len(file.pending)
        last, odd = self._chance.randint(0, count), self._chance.randrange(count) if count else 0
        for at, change in enumerate(file.pending):
            if self.kind == "none" or (self.kind == "prefix" and at > last):
                break
            is_torn = self.kind in ("pages", "sectors") or at == (odd if self.kind == "one" else last)
            if self.kind == "all" or (self.kind in ("prefix", "one") and not is_torn):
                apply(content, change)
            elif self.kind == "subset" or change.data is None:
                if self._chance.random() < 0.5:
                    apply(content, change)
            else:
                self._tear(content, change.offset, change.data, PAGE if self.kind == "pages" else SECTOR)
        return content

    def _tear(self, content: bytearray, offset: int, data: bytes, unit: int) -> None:
        at = offset
        while at < offset + len(data):
            end = min(offset + len(data), at - at % unit + unit)
            if self._chance.random() < 0.5:
                apply(content, Change(at, data[at - offset : end - offset]))
            at = end
