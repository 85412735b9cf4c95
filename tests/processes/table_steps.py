"""Takes the steps of transactions over a table, each in a process of its own.

    python -m tests.processes.table_steps STORE TABLE

This process never opens the store. For every line that it hears it forks; the child opens the store, takes the step
in a detached transaction, says what it came to, and is gone, without closing anything.
"""

from __future__ import annotations

import os
import sys

from storage import Store, TxnctlError
from tests.processes.parent import hear, say


def take(store: Store, table: str, verb: str, *words: str) -> str:
    """One step, in words: what is shown, `ok`, or the code of the error after `!`."""
    accounts = store.table(table)
    if verb == "begin":
        isolation, check, priority = words
        return str(
            store.begin_transaction(
                isolation=isolation, check=check if check != "-" else None, priority=priority
            )
        )
    txn, *words = words
    if verb == "get":
        value = accounts.get(words[0].encode(), txn=txn)
        return "-" if value is None else value.decode()
    if verb == "scan":
        return " ".join(f"{row.key.decode()}={row.value.decode()}" for row in accounts.scan(txn=txn))
    if verb == "put":
        accounts.put(words[0].encode(), words[1].encode(), txn=txn)
    else:
        {"commit": store.commit_transaction, "abort": store.admin.transactions.abort_transaction}[verb](txn)
    return "ok"


def main(path: str, table: str) -> None:
    """See the module."""
    while line := hear():
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        try:
            say("came", take(Store.open(path, lock_timeout=30), table, *line.split()))
        except TxnctlError as error:
            say("came", f"!{error.code}")
        finally:
            sys.stdout.flush()
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
