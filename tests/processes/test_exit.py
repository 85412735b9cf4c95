"""The end of a program that leaves things open: silent, also while the interpreter is taken apart."""

from __future__ import annotations

import pytest

from tests.processes.child import Children

LEFT = {
    "a transaction that has read": "txn = store.transaction(); table.get(b'a', txn=txn)",
    "a transaction that has written": "txn = store.transaction(); table.put(b'a', b'2', txn=txn)",
    "a transaction with sends": "txn = store.transaction(); producer.send(b'x', txn=txn)",
    "a forgotten transaction in a circle": "txn = store.transaction(); table.get(b'a', txn=txn); txn.me = kept; kept.append(txn)",
    "asynchronous sends": "futures = [producer.send_async(b'x') for _ in range(100)]",
    "a consumer with messages": "consumer = store.subscribe('t', 's', initial_position=EARLIEST); consumer.receive(5)",
    "scans": "scan = table.scan(); next(scan); log = store.reports.topic_log('t'); next(log)",
    "a view": "left = store.connection.view(); view = left.__enter__(); rows = view.scan(schema.TOPICS); next(rows)",
    "a group": "group = store.group(); group.__enter__(); producer.send(b'x')",
    "a waiting thread": "threading.Thread(target=lambda: store.subscribe('t', 'w').receive(), daemon=True).start()",
    "a held reader": "reader = store.reader('t'); reader.read_next(5)",
}


@pytest.mark.parametrize("what", list(LEFT))
def test_a_program_ends_in_silence(path: str, children: Children, what: str) -> None:
    """A function that another module keeps has the modules of the program outlive those of Python."""
    child = children.run(
        f"""
        import threading
        from storage import EARLIEST
        from storage.disk import schema
        threading.excepthook = lambda args: None
        kept = []
        store = Store.open(path)
        table = store.table("accounts", create=True)
        table.put(b"a", b"1")
        producer = store.create_producer("t", create_topic=True)
        producer.send(b"first")
        {LEFT[what]}
        """
    )
    child.succeed()
    assert child.complaint() == ""
