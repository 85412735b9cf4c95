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
        "show": ("txnctl.commands.transactions.show:show", "Show every fact about a transaction."),
        "begin": ("txnctl.commands.transactions.begin:begin", "Begin a transaction and print the id, alone."),
        "commit": (
            "txnctl.commands.transactions.commit:commit",
            "Commit a transaction: every effect becomes visible at one instant.",
        ),
        "abort": (
            "txnctl.commands.transactions.abort:abort",
            "Abort any transaction: messages, acknowledgements and writes are dropped.",
        ),
        "run": (
            "txnctl.commands.transactions.run:run",
            "Run a command in a transaction: commit after exit code 0, abort after any failure.",
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
            "Explain a transaction: the state of the owner, blocked messages, and advice.",
        ),
        "slow": (
            "txnctl.commands.transactions.slow:slow",
            "List transactions open for long, and the number of messages each holds back.",
        ),
        "orphans": (
            "txnctl.commands.transactions.orphans:orphans",
            "List open transactions of dead processes.",
        ),
        "reap": (
            "txnctl.commands.transactions.reap:reap",
            "Abort every transaction that is overdue or owned by a dead process.",
        ),
        "history": (
            "txnctl.commands.transactions.history:history",
            "Show ended transactions: time, reason, author, age.",
        ),
        "timeline": (
            "txnctl.commands.transactions.timeline:timeline",
            "Draw a topic: ledgers, open transactions, cursors, and blocked messages.",
        ),
    },
)
