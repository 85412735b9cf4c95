"""The changes of a table: inserts, updates and deletes, and a start that is not kept."""

from __future__ import annotations

from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Work on the table `balances` of a store of its own."""
    teller.use("changes")
    teller.do("store init")
    teller.do("tables create balances")
    version = teller.do("tables put balances alice 100")["version"]
    teller.do("tables put balances alice 90")
    teller.do("tables rm balances alice")
    teller.do("tables put balances /wA= --key-base64 -", b"\xff\xfe")
    teller.look(
        "tables changes balances",
        f"tables changes balances --since {version} -n 2",
        f"tables changes balances --until {version}",
    )
    teller.wait(7200)
    teller.do("store gc --yes")
    teller.look(f"tables changes balances --since {version}")
