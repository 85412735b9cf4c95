"""The text format of Prometheus, version 0.0.4: HELP, TYPE, then the samples of each metric together."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CONTENT = "gauge"
"""All that is told is a level at one moment."""


class Metric:
    """A gauge with samples: labels and a value each; a value that is unknown is left out."""

    __slots__ = ("help", "name", "samples")

    def __init__(
        self, name: str, help: str, samples: Sequence[tuple[Mapping[str, str], float | None]]
    ) -> None:
        self.name, self.help, self.samples = name, help, samples

    def lines(self) -> Iterator[str]:
        """Its block; nothing where there is no sample."""
        known = [(labels, value) for labels, value in self.samples if value is not None]
        if not known:
            return
        yield f"# HELP {self.name} {_help(self.help)}"
        yield f"# TYPE {self.name} {CONTENT}"
        for labels, value in known:
            pairs = ",".join([f'{name}="{_label(text)}"' for name, text in labels.items()])
            braces = f"{{{pairs}}}" if pairs else ""
            yield f"{self.name}{braces} {_number(value)}"


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _label(text: str) -> str:
    return _help(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"
