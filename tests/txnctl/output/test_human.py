"""Human: `txnctl/output/human.py`."""

from __future__ import annotations

import pytest

from txnctl.output import human


class TestHuman:
    """Numbers at three in the morning."""

    @pytest.mark.parametrize(
        ("ms", "text"),
        [(0, "0ms"), (340, "340ms"), (2_000, "2s"), (59_999, "59s"), (60_000, "1m00s"), (2_818_000, "46m58s"),
         (768_000, "12m48s"), (3_600_000, "1h00m"), (86_399_999, "23h59m"), (86_400_000, "1d00h"),
         (100 * 86_400_000, "100d00h"), (-2_000, "-2s"), (None, "-")],
    )  # fmt: skip
    def test_durations(self, ms: int | None, text: str) -> None:
        """The two largest units, never rounded up."""
        assert human.duration(ms) == text

    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (8_808_038, "8.4 MiB"), (1_048_575, "1.0 MiB"),
         (102_348, "99.9 KiB"), (102_349, "100 KiB"), (1_032_192, "1,008 KiB"), (1_048_063, "1,023 KiB"),
         (1_048_064, "1.0 MiB"), (5 << 40, "5.0 TiB"), (1 << 70, "1,048,576 PiB"), (None, "-")],
    )  # fmt: skip
    def test_sizes(self, size: int | None, text: str) -> None:
        """Units of 1,024; one decimal below 100, none from there on."""
        assert human.size(size) == text

    def test_counts_and_plurals(self) -> None:
        """Thousands are parted."""
        assert human.count(5688) == "5,688"
        assert human.count(None) == "-"
        assert human.plural(1, "message") == "1 message"
        assert human.plural(5688, "message") == "5,688 messages"
        assert human.plural(2, "entry", "entries") == "2 entries"

    def test_labels(self) -> None:
        """In the order in which they were given."""
        assert human.labels_text({"job": "loader", "run": "7"}) == "job=loader run=7"
        assert human.labels_text({}) == ""
