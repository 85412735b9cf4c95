"""The server of a store in words."""

from __future__ import annotations

from storage.disk.server_status import ServerStatus, Standby
from txnctl.fields.server import durability_text

STATUS = ServerStatus("15.18", 0, "replicated", "s1", [], [], 12, 97, [])


def test_durability_names_the_standbys() -> None:
    """How far each is behind, or that this role may not see them."""
    standby = Standby("s1", None, "streaming", "sync", 2048, None)
    assert durability_text(STATUS._replace(standbys=[standby])) == (
        "replicated: each change waits for s1; s1 sync, 2.0 KiB behind"
    )
    assert durability_text(STATUS).endswith("no standby is connected")
    assert durability_text(STATUS._replace(standbys=None)).endswith("this role may not see the standbys")
    local = STATUS._replace(durability="local", synchronous_standby_names="")
    assert durability_text(local).startswith("local: the loss of the server's disk loses messages")
