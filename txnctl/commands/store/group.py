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
            "Show what a store is: its format, its age, its size and what it holds.",
        ),
        "verify": (
            "txnctl.commands.store.verify:verify",
            "Check every record of a store and every rule that must hold between them.",
        ),
        "locks": ("txnctl.commands.store.locks:locks", "Show who has the store open, and who may write now."),
        "readers": ("txnctl.commands.store.readers:readers", "Show who reads, and how far behind."),
        "space": ("txnctl.commands.store.space:space", "Show where the space goes."),
        "backup": ("txnctl.commands.store.backup:backup", "Copy a store while it is in use."),
        "restore": ("txnctl.commands.store.restore:restore", "Make a store from a backup."),
        "compact": (
            "txnctl.commands.store.compact:compact",
            "Make the file of a store as small as what it holds.",
        ),
        "gc": ("txnctl.commands.store.gc:gc", "Free what nobody needs any more."),
        "config": (
            "txnctl.commands.store.config:config",
            "Show or change the settings that a store keeps for all who use it.",
        ),
    },
)
