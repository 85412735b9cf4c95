"""The request of a driver: the cluster, the directories, and the steps to run; passed as JSON on its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """A step of a driver.

    Attributes:
        do: `where`, `read`, `copy` or `totals`.
        level: isolation level of the read.
        schema: columns to read; None for all columns.
        native: whether Spark's own Parquet reader reads the topic.
        to: the target topic or table.
        write_id: the id of the write; a repeated write of the same id is stored once.
        slow: the file that the first attempt of a slow task writes; None without a slow task.
    """

    do: str
    topic: str = ""
    level: str = "READ_COMMITTED"
    schema: str | None = None
    native: bool = False
    to: str = ""
    write_id: str = ""
    slow: str | None = None


@dataclass(frozen=True)
class DriverRequest:
    """A request of a driver; `offloaded`, `staging` and `events` are URIs, `local` is Spark's scratch directory.

    `store` is a path, or the URL of a store on a server, which tasks read without offloaded files.
    """

    master: str
    store: str
    offloaded: str | None
    staging: str
    events: str
    local: str
    steps: tuple[Step, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DriverRequest:
        fields: dict[str, Any] = json.loads(text)  # the JSON of `to_json`, with a dict for each step
        return cls(**{**fields, "steps": tuple(Step(**step) for step in fields["steps"])})
