"""The named anomalies, each as one interleaving of two or three transactions, with what must come of every step.

A row is a step, what it comes to where the transactions are serializable, and where they are read-committed. The
transactions begin in order of their names, before the first step, so that T1 is the oldest; x is 10 and y is 20.
`ok` is a step that goes well and shows nothing, `-` a key that is not there, `!code` an error. Those in `writers` are
serializable on both sides: a read-committed transaction only reads. The last row is what stands in the table then.

The rules that the expectations come from: reading at a timestamp; the older of two loses a push; a write is refused
where a later transaction has read; a read-committed read returns the latest committed version.

`uncontrolled` is a store on which the anomaly does happen (see that module), `found` what it is called then.
"""

from __future__ import annotations

from typing import NamedTuple

START = {"x": "10", "y": "20"}


class Row(NamedTuple):
    """A step: transaction, verb, key and value if the verb takes them; and what it must come to."""

    txn: str
    words: list[str]
    serializable: str
    read_committed: str


class Interleaving:
    """See the module."""

    def __init__(self, name: str, uncontrolled: str, found: str, writers: str, text: str) -> None:
        self.name = name
        self.uncontrolled = uncontrolled
        self.found = found
        self.writers = writers.split()
        lines = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
        *steps, end = lines
        assert end[0] == "end"
        self.end_serializable, self.end_read_committed = end[1:]
        self.rows = [Row(words.split()[0], words.split()[1:], *expected) for words, *expected in steps]
        self.transactions = sorted({row.txn for row in self.rows})

    def __repr__(self) -> str:
        return self.name


ANOMALIES = [
    # Two transactions overwrite each other, on two keys in two orders.
    Interleaving("G0", "dirty", "G0", "", """
        T1 put x 11  | ok             | !read-only-transaction
        T2 put x 12  | ok             | !read-only-transaction
        T2 put y 22  | ok             | !read-only-transaction
        T1 put y 21  | !lost-conflict | !read-only-transaction
        T1 commit    | !lost-conflict | ok
        T2 commit    | ok             | ok
        end          | x=12 y=22      | x=10 y=20
    """),
    # Reading what is then aborted.
    Interleaving("G1a", "dirty", "G1a", "T1", """
        T1 put x 101 | ok             | ok
        T2 get x     | 10             | 10
        T1 abort     | ok             | ok
        T2 get x     | 10             | 10
        T2 commit    | ok             | ok
        end          | x=10 y=20      | x=10 y=20
    """),
    # Reading what its writer then overwrites.
    Interleaving("G1b", "dirty", "G1b", "T1", """
        T1 put x 101 | ok             | ok
        T2 get x     | 10             | 10
        T1 put x 11  | !lost-conflict | ok
        T1 commit    | !lost-conflict | ok
        T2 get x     | 10             | 11
        T2 commit    | ok             | ok
        end          | x=10 y=20      | x=11 y=20
    """),
    # Each reads what the other has not committed.
    Interleaving("G1c", "dirty", "G1c", "", """
        T1 put x 11  | ok             | !read-only-transaction
        T2 put y 22  | ok             | !read-only-transaction
        T1 get y     | 20             | 20
        T2 get x     | 10             | 10
        T1 commit    | !lost-conflict | ok
        T2 commit    | ok             | ok
        end          | x=10 y=22      | x=10 y=20
    """),
    # Half of a transaction is observed, and then vanishes behind another one.
    Interleaving("OTV", "dirty", "G-single", "T1 T2", """
        T1 put x 11  | ok             | ok
        T1 put y 19  | ok             | ok
        T1 commit    | ok             | ok
        T2 put x 12  | ok             | ok
        T3 get x     | 11             | 11
        T3 get y     | 19             | 19
        T2 put y 18  | !lost-conflict | ok
        T2 commit    | !lost-conflict | ok
        T3 get y     | 19             | 18
        T3 get x     | 11             | 12
        T3 commit    | ok             | ok
        end          | x=11 y=19      | x=12 y=18
    """),
    # A range is read twice, and another transaction writes into it in between.
    Interleaving("PMP", "committed", "PMP", "T2", """
        T1 scan      | x=10 y=20      | x=10 y=20
        T2 put z 30  | ok             | ok
        T2 commit    | ok             | ok
        T1 scan      | x=10 y=20      | x=10 y=20 z=30
        T1 commit    | ok             | ok
        end          | x=10 y=20 z=30 | x=10 y=20 z=30
    """),
    # Two read a value, and both write back what they made of it: a lost update.
    Interleaving("P4", "committed", "P4", "", """
        T1 get x     | 10             | 10
        T2 get x     | 10             | 10
        T1 put x 11  | !write-too-old | !read-only-transaction
        T2 put x 12  | ok             | !read-only-transaction
        T1 commit    | !transaction-not-open | ok
        T2 commit    | ok             | ok
        end          | x=12 y=20      | x=10 y=20
    """),
    # Of two keys that are written together, one is read before and one after.
    Interleaving("G-single", "committed", "G-single", "T2", """
        T1 get x     | 10             | 10
        T2 get x     | 10             | 10
        T2 get y     | 20             | 20
        T2 put x 12  | ok             | ok
        T2 put y 18  | ok             | ok
        T2 commit    | ok             | ok
        T1 get y     | 20             | 18
        T1 commit    | ok             | ok
        end          | x=12 y=18      | x=12 y=18
    """),
    # Write skew: each reads the key that the other writes.
    Interleaving("G2-item", "snapshot", "G2-item", "", """
        T1 get x     | 10             | 10
        T1 get y     | 20             | 20
        T2 get x     | 10             | 10
        T2 get y     | 20             | 20
        T1 put x 11  | !write-too-old | !read-only-transaction
        T2 put y 21  | ok             | !read-only-transaction
        T1 commit    | !transaction-not-open | ok
        T2 commit    | ok             | ok
        end          | x=10 y=21      | x=10 y=20
    """),
    # The same over ranges: each adds a key to the range that the other has read.
    Interleaving("G2", "snapshot", "G2", "", """
        T1 scan      | x=10 y=20      | x=10 y=20
        T2 scan      | x=10 y=20      | x=10 y=20
        T1 put z 30  | !write-too-old | !read-only-transaction
        T2 put w 42  | ok             | !read-only-transaction
        T1 commit    | !transaction-not-open | ok
        T2 commit    | ok             | ok
        end          | w=42 x=10 y=20 | x=10 y=20
    """),
]  # fmt: skip
