"""The words for a copy of a store that was upgraded on the way."""

from __future__ import annotations


def upgraded_words(format_before: int) -> list[str]:
    """A line on the upgrade of a copy; none where the source has the present format."""
    from storage.disk.schema import FORMAT_NUMBER

    if format_before == FORMAT_NUMBER:
        return []
    return [
        f"Upgraded on the way from format {format_before} to {FORMAT_NUMBER}: earlier releases refuse the new store."
    ]
