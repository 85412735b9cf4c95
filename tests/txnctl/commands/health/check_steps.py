"""Steps that the tests of check share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


_VALUE = r"-?\d+(?:\.\d+)?"


PERFORMANCE = re.compile(rf"([a-z_]+)=({_VALUE})(s|B)?;({_VALUE}:?)?;({_VALUE}:?)?;({_VALUE})?")


SAMPLE = re.compile(rf"([a-z_]+)(?:\{{(.*)\}})? ({_VALUE})")


LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What Prometheus reads: every metric has HELP and TYPE once, and its samples stand together below them."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    lines = text.splitlines()
    assert text.endswith("\n")
    while lines:
        _, keyword, name, _ = lines.pop(0).split(" ", 3)
        assert (keyword, lines.pop(0)) == ("HELP", f"# TYPE {name} gauge")
        assert name not in found
        found[name] = []
        while lines and not lines[0].startswith("#"):
            match = SAMPLE.fullmatch(lines.pop(0))
            assert match is not None
            assert match[1] == name
            labels = LABEL.findall(match[2] or "")
            assert ",".join([f'{label}="{value}"' for label, value in labels]) == (match[2] or "")
            found[name].append((dict(labels), float(match[3])))
        assert found[name]
    return found


def performance(line: str) -> dict[str, tuple[str, ...]]:
    """The performance data of a plugin's first line: value, unit, warn, critical by name."""
    text, bar, data = line.partition(" | ")
    assert bar
    assert "|" not in text
    matches = [PERFORMANCE.fullmatch(word) for word in data.split(" ")]
    assert all(matches)
    return {match[1]: match.groups()[1:5] for match in matches if match is not None}


def facts(**changed: Any) -> dict[str, Any]:
    """The facts that are measured."""
    return {
        "asOfMs": 1_000_000, "writerGate": None, "topics": [], "subscriptions": [], "transactions": {"late": []},
        "producers": [], "findings": [],
        "store": {"diskFreeBytes": 1 << 40}, "readers": {"inUse": 1}, **changed,
    }  # fmt: skip
