"""`txnctl tables`: keys and values, with serializable transactions."""

from __future__ import annotations

from txnctl.cli.declaration import Group

tables = Group(
    "tables",
    "Tables: keys and values, with serializable transactions.",
    elsewhere={
        "list": ("txnctl.commands.tables.list:list_", "List the tables."),
        "create": ("txnctl.commands.tables.create:create", "Create an empty table."),
        "show": ("txnctl.commands.tables.show:show", "Show the facts about one table."),
        "stats": (
            "txnctl.commands.tables.stats:stats",
            "Show the counts of a table, and the transactions that hold keys.",
        ),
        "delete": ("txnctl.commands.tables.delete:delete", "Delete a table with all rows."),
        "get": ("txnctl.commands.tables.get:get", "Print the value of a key: the bytes and a newline."),
        "put": ("txnctl.commands.tables.put:put", "Write a value under a key."),
        "rm": ("txnctl.commands.tables.rm:rm", "Delete a key."),
        "scan": ("txnctl.commands.tables.scan:scan", "Print the rows of a table, or of a range of keys."),
        "versions": ("txnctl.commands.tables.versions:versions", "List all that is kept under a key."),
        "changes": (
            "txnctl.commands.tables.changes:changes",
            "List the changes of a table: inserts, updates and deletes, in order.",
        ),
        "intents": (
            "txnctl.commands.tables.intents:intents",
            "List write intents: the keys held by each transaction.",
        ),
        "history": (
            "txnctl.commands.tables.history:history",
            "List recent conflicts: which transaction lost which key to which.",
        ),
        "export": (
            "txnctl.commands.tables.export:export",
            "Print a table as NDJSON or CSV, to be imported again.",
        ),
        "import": (
            "txnctl.commands.tables.import_:import_",
            "Write rows of a file into a table, all or none.",
        ),
    },
)
