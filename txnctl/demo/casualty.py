"""An E in a separate process, which is killed in the middle of its work.

`python -m txnctl.demo.casualty STORE` receives one batch of requests, books and acknowledges the batch in a
transaction, writes that much to the store, prints one line of JSON, and waits with the transaction open. The parent
process then kills E: none of the transaction may ever show.
"""

from __future__ import annotations

import sys

from txnctl.demo.facts import KilledFacts


def start_and_kill(store_path: str) -> KilledFacts:
    """Run the E of this module, kill the process (SIGKILL) before the commit, and return the printed facts."""
    import json
    import subprocess

    from txnctl.demo import child

    with child.start(__name__, store_path, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
        if not line:
            raise child.failure("E", process)
    return KilledFacts(**json.loads(line))


def _work_until_killed(store_path: str) -> None:
    import json
    import os

    from storage import Store
    from txnctl.demo.clients import BusinessE

    with Store.open(store_path) as store:
        business = BusinessE(store)
        messages = business.receive_unprocessed()
        txn = store.transaction()
        accounts = business.book(messages, txn)
        business.flush_writes(txn)
        facts = KilledFacts(os.getpid(), str(txn.id), len(messages), accounts)
        print(json.dumps(facts._asdict()), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _work_until_killed(sys.argv[1])
