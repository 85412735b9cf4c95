"""Is a history of transactions over a table serializable? Told from what each of them read and wrote, and nothing else.

The direct serialization graph (Adya) has a node for each committed transaction, and an edge to whoever must come
after it in any serial order:

    ww    the second wrote the version that follows the first one's, on some key
    wr    the second read the first one's version
    rw    the second wrote the version that follows the one that the first read (an anti-dependency)
    prw   the same for a range: the first read a range, and the second's version of a key in it follows what stood
          there for the first, or that nothing did (a phantom)

A cycle is an anomaly, and its edges are its name. Versions of a key follow each other in the order that the history
is given with, else by number. Besides, reads of what was never committed, or is not what its writer left, and, where
a transaction's number is its timestamp, reads of anything but the snapshot at it.

It shares no code with the store. Time and memory are linear in the history, but for the cycles found.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

WW, WR, RW, PRW = "ww", "wr", "rw", "prw"
NOTHING = 0
"""The version of a key that is not there."""


class Get(NamedTuple):
    """A key read: its version, NOTHING if there was none, and the value."""

    key: str
    version: int
    value: str | None


class Scan(NamedTuple):
    """The keys from `start` on below `end` (None: all that follow) read, in whichever direction; what was there."""

    start: str
    end: str | None
    rows: list[Get]


class Put(NamedTuple):
    """A key written; None deletes it."""

    key: str
    value: str | None


Operation = Get | Scan | Put


class Recorded(NamedTuple):
    """A transaction: its version, which is its timestamp, and what it did, in order."""

    name: str
    version: int
    is_committed: bool
    operations: list[Operation]

    def written(self) -> dict[str, str | None]:
        """What it left under each key."""
        return {each.key: each.value for each in self.operations if isinstance(each, Put)}


class Found(NamedTuple):
    """Something wrong: the name of the anomaly, and the transactions and keys that make it."""

    kind: str
    text: str


class Edge(NamedTuple):
    """Why one transaction comes before another."""

    kind: str
    key: str
    after: int


class History:
    """A history to be judged.

    Args:
        orders: versions of a key in the order in which they were installed; by number where it is not given.
        by_timestamp: whether reads are of the snapshot at the transaction's version.
    """

    def __init__(
        self,
        transactions: Iterable[Recorded],
        *,
        orders: dict[str, list[int]] | None = None,
        by_timestamp: bool = True,
    ) -> None:
        self._all = list(transactions)
        self._by_version = {each.version: each for each in self._all}
        self._by_timestamp = by_timestamp
        self._found: list[Found] = []
        self._installed: dict[str, list[int]] = {}
        self._places: dict[str, dict[int, int]] = {}
        self._deletions: dict[str, list[int]] = {}
        self._left: dict[tuple[str, int], str | None] = {}
        self._keys: list[str] = []
        self._edges: dict[int, list[Edge]] = {}
        self._install(orders or {})

    def _install(self, orders: dict[str, list[int]]) -> None:
        versions: dict[str, list[int]] = defaultdict(list)
        for each in self._committed():
            for key, value in each.written().items():
                versions[key].append(each.version)
                self._left[key, each.version] = value
        for key, found in versions.items():
            self._installed[key] = [v for v in orders[key] if v in found] if key in orders else sorted(found)
            self._deletions[key] = sorted(version for version in found if self._left[key, version] is None)
            self._places[key] = {version: place for place, version in enumerate(self._installed[key])}
            insort(self._keys, key)

    def _committed(self) -> Iterator[Recorded]:
        return (each for each in self._all if each.is_committed)

    def check(self) -> list[Found]:
        """Everything that is wrong with it; nothing if it is serializable."""
        if len(self._by_version) != len(self._all):
            self._report("reuse", "a timestamp was given twice")
        self._edges = {each.version: [] for each in self._committed()}
        for key, versions in self._installed.items():
            for before, after in pairwise(versions):
                self._edges[before].append(Edge(WW, key, after))
        for each in self._committed():
            self._follow(each)
        for component in components(self._edges):
            self._name_cycle(component)
        return self._found

    def _report(self, kind: str, text: str) -> None:
        self._found.append(Found(kind, text))

    # Reads

    def _follow(self, txn: Recorded) -> None:
        """Judge what a transaction read, and draw the edges of it."""
        own: dict[str, str | None] = {}
        for each in txn.operations:
            if isinstance(each, Put):
                own[each.key] = each.value
            elif isinstance(each, Get):
                self._follow_read(txn, own, each, RW)
            else:
                self._follow_scan(txn, own, each)

    def _follow_scan(self, txn: Recorded, own: dict[str, str | None], scan: Scan) -> None:
        rows = {row.key: row for row in scan.rows}
        inside = [key for key in rows if key >= scan.start and (scan.end is None or key < scan.end)]
        if len(inside) != len(scan.rows):
            self._report("range", f"{txn.name} was shown keys twice, or keys that it did not ask for")
        for key in self._between(scan.start, scan.end):
            self._follow_read(txn, own, rows.pop(key, None) or Get(key, NOTHING, None), PRW)
        for row in rows.values():
            self._follow_read(txn, own, row, PRW)

    def _between(self, start: str, end: str | None) -> list[str]:
        last = len(self._keys) if end is None else bisect_left(self._keys, end)
        return self._keys[bisect_left(self._keys, start) : last]

    def _follow_read(self, txn: Recorded, own: dict[str, str | None], read: Get, kind: str) -> None:
        if read.key in own:
            seen = read.value if read.version else None
            if seen != own[read.key]:
                self._report(
                    "own-write", f"{txn.name} wrote {own[read.key]} under {read.key}, and read {read}"
                )
            return
        version = self._alive_or_dead(txn, read)
        if version is None:
            return
        installed = self._installed.get(read.key, [])
        place = self._places[read.key][version] if version else -1
        if version and version != txn.version:
            self._edges[version].append(Edge(WR, read.key, txn.version))
        following = installed[place + 1] if place + 1 < len(installed) else txn.version
        if following != txn.version:
            self._edges[txn.version].append(Edge(kind, read.key, following))
        if self._by_timestamp:
            self._check_snapshot(txn, read, version)

    def _alive_or_dead(self, txn: Recorded, read: Get) -> int | None:
        """The version that a read goes by, which is a deletion if it found none; None if no such was ever left."""
        if read.version == NOTHING:
            deletions = self._deletions.get(read.key, [])
            place = bisect_left(deletions, txn.version)
            return deletions[place - 1] if place else NOTHING
        writer, what = self._by_version.get(read.version), f"{txn.name} read {read}"
        if writer is None:
            self._report("unknown", f"{what}, which nobody wrote")
        elif not writer.is_committed:
            self._report("G1a", f"{what} of {writer.name}, which did not commit")
        elif Put(read.key, read.value) not in writer.operations:
            self._report("unknown", f"{what}, which {writer.name} did not write")
        elif self._left[read.key, read.version] != read.value:
            self._report("G1b", f"{what}, which {writer.name} overwrote before it committed")
        else:
            return read.version
        return None

    def _check_snapshot(self, txn: Recorded, read: Get, version: int) -> None:
        installed = self._installed.get(read.key, [])
        place = bisect_left(installed, txn.version)
        wanted = installed[place - 1] if place else NOTHING
        if version != wanted:
            self._report("snapshot", f"{txn.name} ({txn.version}) read {read}; its snapshot has {wanted}")

    # Cycles

    def _name_cycle(self, component: set[int]) -> None:
        """Report one cycle of a component, the gravest there is."""
        edges = {
            node: [edge for edge in self._edges[node] if edge.after in component and edge.after != node]
            for node in component
        }
        for kind, allowed in (("G0", {WW}), ("G1c", {WW, WR})):
            for node in component:
                path = shortest(edges, node, node, allowed)
                if path:
                    self._report(kind, self._tell(node, path))
                    return
        for node in component:
            for edge in edges[node]:
                if edge.kind in (RW, PRW):
                    path = shortest(edges, edge.after, node, {WW, WR})
                    if path:
                        self._report(_with_one(edge, path), self._tell(node, [edge, *path]))
                        return
        node = next(iter(component))
        path = shortest(edges, node, node, {WW, WR, RW})
        if not path:
            path = shortest(edges, node, node, {WW, WR, RW, PRW})
        is_item = all(edge.kind != PRW for edge in path)
        self._report("G2-item" if is_item else "G2", self._tell(node, path))

    def _tell(self, node: int, path: list[Edge]) -> str:
        parts = [self._by_version[node].name]
        parts += [f"-{edge.kind} {edge.key}-> {self._by_version[edge.after].name}" for edge in path]
        return " ".join(parts)


def _with_one(anti: Edge, path: list[Edge]) -> str:
    """The name of a cycle with one anti-dependency."""
    if anti.kind == PRW:
        return "PMP"
    return "P4" if all(edge.kind == WW and edge.key == anti.key for edge in path) else "G-single"


def shortest(edges: dict[int, list[Edge]], start: int, goal: int, kinds: set[str]) -> list[Edge]:
    """The shortest path of one edge at least, over edges of these kinds; empty if there is none."""
    came: dict[int, tuple[int, Edge]] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in edges[node]:
            if edge.kind not in kinds or edge.after in came:
                continue
            came[edge.after] = (node, edge)
            if edge.after == goal:
                path, at = [edge], node
                while at != start:
                    at, edge_before = came[at]
                    path.insert(0, edge_before)
                return path
            waiting.append(edge.after)
    return []


def components(edges: dict[int, list[Edge]]) -> list[set[int]]:
    """The sets of nodes that reach each other, of two nodes and more (Tarjan, without recursion)."""
    found: list[set[int]] = []
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for edge in rest:
                after = edge.after
                if after not in index:
                    index[after] = low[after] = len(index)
                    stack.append(after)
                    on_stack.add(after)
                    work.append((after, iter(edges[after])))
                    break
                if after in on_stack:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: set[int] = set()
                    while not component or node not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    if len(component) > 1:
                        found.append(component)
    return found
