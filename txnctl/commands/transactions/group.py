"""`txnctl transactions`: begin, commit, abort and explain transactions."""

from __future__ import annotations

from txnctl.cli.declaration import Group

transactions = Group(
    "transactions",
    "Begin, commit, abort and watch transactions.",
    elsewhere={
        "list": (
            "txnctl.commands.transactions.list:list_",
            "List the unfinished transactions, the oldest first.",
        ),
        "show": ("txnctl.commands.transactions.show:show", "Show all that is known of a transaction."),
        "begin": ("txnctl.commands.transactions.begin:begin", "Begin a transaction and print its id, alone."),
        "commit": (
            "txnctl.commands.transactions.commit:commit",
            "Commit a transaction: all of it becomes visible at one instant.",
        ),
        "abort": (
            "txnctl.commands.transactions.abort:abort",
            "Abort a transaction, of somebody else too: all of it is dropped.",
        ),
        "run": (
            "txnctl.commands.transactions.run:run",
            "Run a command in a transaction: commit if it exits 0, else abort.",
        ),
        "wait": (
            "txnctl.commands.transactions.wait:wait",
            "Wait until a transaction is committed or aborted.",
        ),
        "blocked": (
            "txnctl.commands.transactions.blocked:blocked",
            "Show behind which open transactions committed messages wait.",
        ),
        "explain": (
            "txnctl.commands.transactions.explain:explain",
            "Explain a transaction: is its owner alive, whom does it hold up, what to do.",
        ),
        "slow": (
            "txnctl.commands.transactions.slow:slow",
            "List transactions that have been open for long, and what each holds back.",
        ),
        "orphans": (
            "txnctl.commands.transactions.orphans:orphans",
            "List open transactions whose process is dead.",
        ),
        "reap": (
            "txnctl.commands.transactions.reap:reap",
            "Abort all transactions that are overdue, or whose process is dead.",
        ),
        "history": (
            "txnctl.commands.transactions.history:history",
            "Show how transactions ended: when, why, by whom, after how long.",
        ),
        "timeline": (
            "txnctl.commands.transactions.timeline:timeline",
            "Draw a topic: its ledgers, open transactions, cursors, and what is blocked.",
        ),
    },
)
