"""Message ids on the command line: `L:E` and `L:E:B`."""

from __future__ import annotations

from txnctl.cli.value_types import Grammar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.position import MessageId


class MessageIdGrammar(Grammar):
    """`L:E` or `L:E:B`."""

    name = "message id"
    sample = "12:4471"
    expected = "ledger:entry or ledger:entry:batchIndex, such as 12:4471 or 12:4471:3"

    def read(self, text: str) -> MessageId:
        """Parse the id by the rules of the engine."""
        from storage.values.position import MessageId

        return MessageId.parse(text)


MESSAGE_ID = MessageIdGrammar()
