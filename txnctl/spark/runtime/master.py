"""The master of a cluster: a look at its address before a JVM is started, so that no answer is one clear error.

Spark itself tries for a minute, behind a screen of warnings, and ends with an exception about its own parts.
"""

from __future__ import annotations

import re
import socket
from typing import Final, NamedTuple

from storage.errors import ClusterUnreachable, InvalidValue

CONNECT_S: Final = 5.0
"""Seconds for the connection to one address."""

ANSWER_S: Final = 60.0
"""Seconds for a master that takes connections to register the job."""

_SCHEMES = {"spark": 7077, "k8s": 443, "sc": 15002}
"""Masters with a host in their URL, and the port of each without one."""

_URL = re.compile(r"^(spark|sc|k8s)://(?:https?://)?([^/;]+)")
_HOST = re.compile(r"^(?:\[([^\]]+)\]|([^:]+))(?::(.+))?$")
_HINT = "Start the master, or correct --master; `--master 'local[*]'` runs the job on this machine."


class Address(NamedTuple):
    """An address of a master."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def addresses(master: str) -> list[Address]:
    """Return the addresses that the URL of a master names; none for `local`, `yarn` and their like.

    Raises:
        InvalidValue: a port that is no number.
    """
    url = _URL.match(master)
    if url is None:
        return []
    scheme, places = url.groups()
    named = []
    for place in places.split(","):
        parts = _HOST.match(place)
        port = (parts[3] if parts else None) or str(_SCHEMES[scheme])
        if parts is None or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise InvalidValue(
                f"{master!r} names no master: {place!r} is not host:port",
                hint="Write --master spark://host:7077.",
                master=master,
            )
        named.append(Address(parts[1] or parts[2], int(port)))
    return named


def check_reachable(master: str, timeout_s: float = CONNECT_S) -> None:
    """Connect to the master, or to one of several.

    Raises:
        ClusterUnreachable: none of the addresses takes a connection in time.
        InvalidValue: as `addresses`.
    """
    reasons = []
    for address in addresses(master):
        try:
            socket.create_connection(address, timeout_s).close()
        except OSError as error:
            reasons.append(f"{address}: {_reason(error, timeout_s)}")
        else:
            return
    if reasons:
        raise ClusterUnreachable(
            f"the Spark master cannot be reached at {'; '.join(reasons)}", hint=_HINT, master=master
        )


def no_answer(master: str) -> ClusterUnreachable:
    """The error about a master that takes connections and does not register the job."""
    places = ", ".join(map(str, addresses(master)))
    return ClusterUnreachable(
        f"the Spark master at {places} takes connections and does not answer",
        hint=f"It may be stopped, no Spark master, or of another release. {_HINT}",
        master=master,
    )


def _reason(error: OSError, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, socket.gaierror):
        return "no such host"
    return (error.strerror or str(error)).lower()
