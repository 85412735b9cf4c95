"""The numbers of the story, act by act, as `txnctl demo -o json` prints them."""

from __future__ import annotations

from typing import NamedTuple

from storage.json_form import Flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import TxnID


class OrdinaryFacts(NamedTuple):
    """Messages sent and booked before a transfer was left open."""

    lines: int
    messages: int
    remittances: int
    booked: int


class BlockedFacts(NamedTuple):
    """Messages that E and D saw while the transfer was open, and the positions of the topic."""

    transaction: TxnID
    max_read_position: str
    last_confirmed_entry: str
    blocked: int
    uncommitted: int
    delivered: int
    monitor_saw: int


class KilledFacts(NamedTuple):
    """The work of the killed E."""

    pid: int
    transaction: str
    requests: int
    accounts: int


class CommittedFacts(NamedTuple):
    """Messages that E booked after the commit."""

    max_read_position: str
    caught_up: int
    caught_up_ms: int
    killed: KilledFacts


class AbortedFacts(NamedTuple):
    """Messages around the aborted transfer."""

    transaction: TxnID
    messages: int
    monitor_saw: int
    booked: int


class LevelFacts(NamedTuple):
    """Messages by isolation level."""

    monitor_saw: int
    committed_messages: int
    stored_messages: int


class BookFacts(NamedTuple):
    """The numbers of the checks of balances and bookings: the first fields of `AuditFacts`."""

    accounts: int
    accounts_agreeing: int
    partner_banks: int
    settled: str
    requests_booked: int


class AuditFacts(NamedTuple):
    """The numbers of the final checks."""

    accounts: int
    accounts_agreeing: int
    partner_banks: int
    settled: str
    requests_booked: int
    levels: Flat[LevelFacts]
    problems: int


class StoryFacts(NamedTuple):
    """The facts of all acts."""

    ordinary: OrdinaryFacts
    blocked: BlockedFacts
    committed: CommittedFacts
    aborted: AbortedFacts
    audit: AuditFacts
