"""The text format of Prometheus, version 0.0.4: HELP, TYPE, then the samples of each metric together."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GAUGE = "gauge"
"""The type of a level at one moment."""
COUNTER = "counter"
"""The type of a count that begins at zero and grows; the name ends in `_total`."""


class Metric:
    """A gauge or counter with samples: labels and a value each; a value that is unknown is left out."""

    __slots__ = ("help", "name", "samples", "type")

    def __init__(
        self,
        name: str,
        help: str,
        samples: Sequence[tuple[Mapping[str, str], float | None]],
        type: str = GAUGE,
    ) -> None:
        self.name, self.help, self.samples, self.type = name, help, samples, type

    def lines(self) -> Iterator[str]:
        """Its block; nothing where there is no sample."""
        known = [(labels, value) for labels, value in self.samples if value is not None]
        if not known:
            return
        yield from _head(self.name, self.help, self.type)
        for labels, value in known:
            pairs = ",".join([f'{name}="{_label(text)}"' for name, text in labels.items()])
            braces = f"{{{pairs}}}" if pairs else ""
            yield f"{self.name}{braces} {_number(value)}"


class Histogram:
    """Observations without labels, by the bucket that each one is in.

    Attributes:
        bounds: upper bounds of the buckets, growing.
        counts: observations up to each bound and in no earlier bucket, then those beyond the last bound.
        sum: of all observations, in the unit of the bounds.
    """

    __slots__ = ("bounds", "counts", "help", "name", "sum")

    def __init__(
        self, name: str, help: str, bounds: Sequence[float], counts: Sequence[int], sum: float
    ) -> None:
        self.name, self.help, self.bounds, self.counts, self.sum = name, help, bounds, counts, sum

    def lines(self) -> Iterator[str]:
        """Its block; each bucket of the format counts the earlier ones too."""
        yield from _head(self.name, self.help, "histogram")
        total = 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            total += count
            yield f'{self.name}_bucket{{le="{bound}"}} {total}'
        yield f"{self.name}_sum {self.sum:.9f}"
        yield f"{self.name}_count {total}"


def _head(name: str, help: str, type: str) -> Iterator[str]:
    yield f"# HELP {name} {_help(help)}"
    yield f"# TYPE {name} {type}"


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _label(text: str) -> str:
    return _help(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"
