"""Options of `produce` as one value."""

from __future__ import annotations

from txnctl.cli.option_values import OptionValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import AccessMode, TxnID


class ProduceOptions(OptionValues):
    """The options and the file of `txnctl produce`, as typed."""

    file: str | None
    texts: Sequence[str]
    tombstone: bool
    format_: str | None
    key: str | None
    properties: Sequence[tuple[str, str]]
    event_time: int | None
    deliver_after: float | None
    deliver_at: int | None
    producer_name: str | None
    sequence_id: int | None
    access_mode: AccessMode | None
    timeout: float | None
    epoch: int | None
    session: str | None
    session_file: str | None
    txn: TxnID | None
    atomic: bool
    batch: int | None
    create: bool
    on_error: str | None
    print_ids: bool

    @property
    def reads_input(self) -> bool:
        """Whether messages come from a file or standard input, not from -m or --null."""
        return not (self.texts or self.tombstone)
