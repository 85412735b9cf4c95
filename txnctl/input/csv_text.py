"""CSV as lines of text for the csv module, with their ends. Bytes that are not UTF-8 pass through unharmed."""

from __future__ import annotations

from storage.errors import BadLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from txnctl.input.lines import Block


def csv_text(blocks: Iterable[Block], line_bytes_max: int, at_pause: Callable[[], None]) -> Iterator[str]:
    """The lines of the blocks, with CR.

    Args:
        line_bytes_max: for the error about a line that is longer.
        at_pause: called after each block, before more input is waited for.

    Raises:
        BadLine: a line is too long to be held.
    """
    for block in blocks:
        for line in block.lines:
            yield line.decode("utf-8", "surrogateescape") + "\n"
        at_pause()
        if block.too_long is not None:
            # The line may stand inside quotes, and the lines after would be misread.
            raise BadLine(
                f"line {block.too_long} is longer than {line_bytes_max:,} bytes",
                hint="Is a closing quote missing?",
                lineNumber=block.too_long,
            )
