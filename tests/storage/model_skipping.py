"""The model of dispatch with `--on-open skip`: see model_subscription.py, and docs/decisions/0024.

What is recorded of an open transaction is that it is awaited; what comes of it is looked at where its marker stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage import SubscriptionType, TransactionState

if TYPE_CHECKING:
    from tests.storage.model import Slot
    from tests.storage.model_subscription import ModelConsumer, ModelSubscription

OPEN, ABORTED = TransactionState.OPEN, TransactionState.ABORTED


class Passing:
    """How far dispatch has come on a subscription that skips.

    Attributes:
        read: index of the last entry that was looked at, or passed over.
        awaited: transactions passed over: up to which entry they were looked at since they ended; -1 if not at all.
        behind: messages that wait for their key, each with the transaction that holds it.
    """

    def __init__(self, read: int) -> None:
        self.read = read
        self.awaited: dict[int, int] = {}
        self.behind: dict[Slot, int] = {}


class Walk:
    """One look for what a consumer can be handed; nothing is done before `apply`."""

    def __init__(self, mine: ModelSubscription, consumer: ModelConsumer, room: int, now_ns: int) -> None:
        self.mine, self.topic, self.consumer = mine, mine.topic, consumer
        self.room, self.now_ns = room, now_ns
        self.by_key = mine.type is SubscriptionType.KEY_SHARED
        self.share = mine.key_share()
        self.blocked_keys: dict[bytes, Slot] = {}
        self.awaited = dict(mine.passing.awaited)
        self.done: set[int] = set()
        self.moved: set[int] = set()
        self.put_behind: set[int] = set()
        self.actions: list[Callable[[], object]] = []
        self.handed: list[tuple[Slot, int]] = []
        self.due = mine.due_now(room)
        self.is_worth_it = False
        self.read = max(mine.passing.read, mine.mark_delete())
        self._look_again()
        if self.room:
            self._go_on()

    def apply(self) -> list[tuple[Slot, int]]:
        """Do it; what is handed out, in order."""
        for action in self.actions:
            action()
        self.mine.passing.read = self.read
        self.mine.passing.awaited = self.awaited
        return sorted(self.handed)

    def _look_again(self) -> None:
        """At what was looked at before."""
        mine, passing = self.mine, self.mine.passing
        for index in range(mine.mark_delete() + 1, self.read + 1):
            txn = self.topic.log[index].txn
            slots = [
                slot
                for slot in self.topic.slots(index)
                if not mine.is_acked(slot)
                and slot not in passing.behind
                and (slot not in mine.delayed or slot in self.due)
            ]
            if not self.room:
                return
            if not slots or index > passing.awaited.get(txn, len(self.topic.log)):
                continue
            if self.topic.state(index) is ABORTED:
                if any(not mine.pending_in(slot) for slot in slots):
                    self._pass(index)
            else:
                self._offer(index, slots, is_new=False)

    def _go_on(self) -> None:
        for index in range(self.read + 1, len(self.topic.log)):
            if not self.room:
                return
            entry, slots = self.topic.log[index], self.topic.slots(index)
            if all(map(self.mine.is_acked, slots)):
                self.read = index
                continue
            if entry.kind != "messages":
                if entry.txn in self.awaited and not self._take(index):
                    self.is_worth_it = True
                    return
                self._pass(index)
            elif entry.txn in self.awaited or self.topic.state(index) is OPEN:
                self.awaited.setdefault(entry.txn, -1)
            elif self.topic.state(index) is ABORTED:
                self._pass(index)
            else:
                self._offer(index, slots, is_new=True)
            self.read = index

    def _take(self, marker: int) -> bool:
        """A transaction has ended: its own messages, and those behind them."""
        mine, txn = self.mine, self.topic.log[marker].txn
        if txn in self.put_behind:
            return False
        self.done.add(txn)
        after = max(self.awaited[txn], mine.mark_delete())
        behind = {slot for slot, holder in mine.passing.behind.items() if holder == txn}
        for index in range(after + 1, marker):
            waiting = sorted(slot for slot in behind if slot[0] == index)
            is_own = self.topic.log[index].txn == txn
            if not is_own and not waiting:
                continue
            if not self.room or index in self.moved:
                return False
            for slot in waiting:
                self.actions.append(lambda slot=slot: mine.passing.behind.pop(slot))
            if not is_own:
                self._offer(index, waiting, is_new=True)
            elif self.topic.state(index) is ABORTED:
                self._pass(index)
            else:
                self._offer(index, self.topic.slots(index), is_new=True)
            self.awaited[txn] = index
        del self.awaited[txn]
        self.is_worth_it = True
        return True

    def _pass(self, index: int) -> None:
        self.is_worth_it = True
        self.actions.append(lambda: self.mine.pass_over(index))

    def _offer(self, index: int, slots: list[Slot], is_new: bool) -> None:
        mine = self.mine
        for slot in slots:
            if mine.is_acked(slot):
                continue
            if mine.is_early(slot):
                self.actions.append(lambda slot=slot: mine.pass_early(slot))
                self.is_worth_it = True
                self.moved.add(index)
                continue
            if slot in self.due:
                self.actions.append(lambda slot=slot: mine.delayed.discard(slot))
                self.is_worth_it = True
            key = self.topic.message(slot).key if self.by_key else None
            is_known = slot in mine.parted
            is_free = mine.is_free(slot, self.now_ns)
            if is_free and mine.is_worn_out(slot):
                self.actions.append(lambda slot=slot: mine.bury(slot))
                self.is_worth_it = True
                self.moved.add(index)
                continue
            holder = 0 if key is None else self._holder(key, slot)
            if mine.holder.get(slot) is self.consumer:
                continue
            if holder and not is_known:
                self.actions.append(
                    lambda slot=slot, holder=holder: mine.passing.behind.update({slot: holder})
                )
                self.put_behind.add(holder)
                self.is_worth_it = True
                self.moved.add(index)
                continue
            is_held = holder or (key is not None and self.blocked_keys.get(key, slot) < slot)
            if is_free and not is_held and key is not None:
                is_held = not self.share.takes(key)
            if is_free and not is_held and self.room:
                self.handed.append((slot, mine.times.get(slot, 0)))
                self.actions.append(lambda slot=slot: mine.hand_out(slot, self.consumer))
                self.room -= 1
                self.is_worth_it = True
                self.moved.add(index)
                continue
            if key is not None:
                self.blocked_keys[key] = min(self.blocked_keys.get(key, slot), slot)
            if (is_new or slot in self.due) and not is_known:
                self.actions.append(lambda slot=slot: mine.parted.add(slot))
                self.moved.add(index)

    def _holder(self, key: bytes, slot: Slot) -> int:
        """The awaited transaction that keeps a message waiting, by its first message of the key not acknowledged.

        One that waits behind the transaction counts too: its own may be acknowledged once it has ended.
        """
        behind = self.mine.passing.behind
        for index in range(slot[0] + 1):
            if self.topic.log[index].kind != "messages":
                continue
            for each in self.topic.slots(index):
                txn = behind.get(each, self.topic.log[index].txn)
                if txn not in self.awaited or txn in self.done or slot[0] <= self.awaited[txn]:
                    continue
                if each >= slot or self.mine.is_acked(each):
                    continue
                if self.topic.message(each).key == key and self.mine.holds_key(each):
                    return txn
        return 0
