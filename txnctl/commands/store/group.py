"""`txnctl store`: create a store, look after it, back it up."""

from __future__ import annotations

from txnctl.cli.declaration import Group

store = Group(
    "store",
    "Create a store, look after it, back it up.",
    elsewhere={
        "init": ("txnctl.commands.store.init:init", "Create an empty store."),
        "info": (
            "txnctl.commands.store.info:info",
            "Show the facts about a store: format, age, size and counts of objects.",
        ),
        "verify": (
            "txnctl.commands.store.verify:verify",
            "Check every record of a store and every rule between records.",
        ),
        "locks": (
            "txnctl.commands.store.locks:locks",
            "Show the processes that have the store open, and the present writer.",
        ),
        "readers": (
            "txnctl.commands.store.readers:readers",
            "Show the reading processes, and how far behind each is.",
        ),
        "space": ("txnctl.commands.store.space:space", "Show where the space goes."),
        "backup": ("txnctl.commands.store.backup:backup", "Copy a store in use."),
        "restore": ("txnctl.commands.store.restore:restore", "Make a store from a backup."),
        "copy": (
            "txnctl.commands.store.copy:copy",
            "Copy a store to a new one, between directories and servers.",
        ),
        "compact": (
            "txnctl.commands.store.compact:compact",
            "Make the file of a store as small as the content.",
        ),
        "upgrade": (
            "txnctl.commands.store.upgrade:upgrade",
            "Bring a store of an earlier release to the present format.",
        ),
        "gc": ("txnctl.commands.store.gc:gc", "Free unused records, pages and files."),
        "config": (
            "txnctl.commands.store.config:config",
            "Show or change the settings of a store, which apply to every process.",
        ),
    },
)
