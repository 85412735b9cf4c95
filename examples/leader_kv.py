"""A key-value state with one leader at a time, kept in a topic: the pattern with which PIP-68 ends.

The topic is the write-ahead log of the state. Anybody may read it; whoever owns it leads, and alone appends to it.
Three rules make it safe:

1. *Own first, then read.* From the moment we own the topic nobody else can append to it, and what others had written
   in transactions that were still open is aborted. So what READ_COMMITTED shows up to the end is all that was, and
   all that will ever stand before our own first message.
2. *Append first, then apply.* The state changes by reading the log, and by nothing else, for our own writes too. It
   cannot have what the log has not, and if a write ends in an error, reading on says whether it was stored.
3. *Fenced is over.* A leader that was stopped, or cut off, cannot know that it lost the topic; its next append is
   refused, and so are all after it. It throws its state away and stands in the queue again like everybody else.

The state is read from the compacted topic: the newest message of each key, and what was written since. So a new leader
is as quick after ten million writes as after ten, and `txnctl topics compact` with a retention keeps the topic small.

Run it in two terminals, as examples/README.md shows:

    python examples/leader_kv.py STORE TOPIC NAME [--take-over]
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

from storage import AccessMode, IsolationLevel, Producer, Store
from storage.errors import ProducerFenced, TxnctlError

FENCED = 4
"""Exit code of one that lost the topic, as with txnctl: a supervisor starts it anew."""


class Entry(NamedTuple):
    """What a key has.

    Attributes:
        epoch: of the leader that wrote it; -1 for what was written before there was any.
    """

    value: bytes
    epoch: int


class State:
    """What the messages of a topic add up to. Anybody may follow it: it only reads."""

    def __init__(self, store: Store, topic: str) -> None:
        self._reader = store.reader(topic, isolation_level=IsolationLevel.READ_COMMITTED, read_compacted=True)
        self.entries: dict[bytes, Entry] = {}

    def read_on(self) -> None:
        """Apply what was written since the last time, to the end of the log as it is now."""
        for message in self._reader:
            if message.key is None:
                continue
            if message.value is None:
                self.entries.pop(message.key, None)
            else:
                self.entries[message.key] = Entry(message.value, message.epoch)


class Leader:
    """The one that may change the state, as long as it owns the topic."""

    def __init__(self, store: Store, owner: Producer) -> None:
        """Takes over what its predecessors wrote.

        Args:
            owner: connected to the topic in an exclusive mode. It has to be there before a word is read.
        """
        self._owner = owner
        self.epoch = owner.topic_epoch
        self.state = State(store, owner.topic)
        self.state.read_on()

    def write(self, key: bytes, value: bytes | None) -> None:
        """Give a key a value, or take it away (None). Returns when that is on disk, and in the state.

        Raises:
            ProducerFenced: somebody else leads now; nothing was stored, and this leader can do nothing any more.
        """
        self._owner.send(value, key=key)
        self.state.read_on()


def say(*words: object) -> None:
    """A line for whoever sits at the other end, at once."""
    print(*words, flush=True)


def shown(key: bytes, entry: Entry | None) -> str:
    """A key of the state, and who wrote it."""
    name = key.decode("utf-8", "backslashreplace")
    if entry is None:
        return f"{name} is gone"
    leader = f"epoch {entry.epoch}" if entry.epoch >= 0 else "no leader"
    return f"{name} = {entry.value.decode('utf-8', 'backslashreplace')} ({leader})"


def obey(leader: Leader) -> None:
    """Do what is typed, line by line, until the input ends."""
    entries, prompt = leader.state.entries, "> " if sys.stdin.isatty() else ""
    while True:
        try:
            words = input(prompt).split(maxsplit=2)
        except EOFError:
            if prompt:
                say()  # what the shell says next stands on a line of its own
            return
        match words:
            case ["put", key, value]:
                leader.write(key.encode(), value.encode())
                say(shown(key.encode(), entries.get(key.encode())))
            case ["delete", key]:
                leader.write(key.encode(), None)
                say(shown(key.encode(), entries.get(key.encode())))
            case ["show"]:
                leader.state.read_on()
                for each, entry in sorted(entries.items()):
                    say(shown(each, entry))
                say("keys:", len(entries))
            case _:
                say("put KEY VALUE, delete KEY, or show; Ctrl-D ends")


def main() -> int:
    """Wait for the topic, lead, obey; the exit code."""
    parser = argparse.ArgumentParser(
        description="A key-value state with one leader at a time, kept in a topic."
    )
    parser.add_argument("store", help="directory of the store: `txnctl store init` makes one")
    parser.add_argument("topic", help="the write-ahead log; made if it is missing")
    parser.add_argument("name", help="of this instance")
    parser.add_argument("--take-over", action="store_true", help="do not wait: fence whoever leads or waits")
    asked = parser.parse_args()
    mode = AccessMode.EXCLUSIVE_WITH_FENCING if asked.take_over else AccessMode.WAIT_FOR_EXCLUSIVE

    def on_wait(before: list[str]) -> None:
        say(f"{asked.name} waits for {asked.topic}, behind", ", ".join(before))

    try:
        with (
            Store.open(asked.store) as store,
            store.create_producer(
                asked.topic, producer_name=asked.name, access_mode=mode, create_topic=True, on_wait=on_wait
            ) as owner,
        ):
            leader = Leader(store, owner)
            say(
                f"{asked.name} leads {asked.topic} in epoch {leader.epoch}, keys: {len(leader.state.entries)}"
            )
            obey(leader)
    except ProducerFenced as error:
        say(f"{asked.name} is fenced:", error.message)
        return FENCED
    except TxnctlError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
