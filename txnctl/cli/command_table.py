"""Commands of the top level by name. Names of modules are text here: a module is loaded when the command runs."""

from __future__ import annotations

from typing import NamedTuple

COMMANDS = {
    "store": ("txnctl.commands.store.group:store", "Create a store, look after it, back it up."),
    "topics": (
        "txnctl.commands.topics.group:topics",
        "Create topics, look into them, trim them, delete them.",
    ),
    "subscriptions": (
        "txnctl.commands.subscriptions.group:subscriptions",
        "Subscriptions: their cursors, isolation levels and backlogs.",
    ),
    "producers": (
        "txnctl.commands.producers.group:producers",
        "Producers: who may produce to a topic, who waits, and leader election.",
    ),
    "transactions": (
        "txnctl.commands.transactions.group:transactions",
        "Begin, commit, abort and watch transactions.",
    ),
    "produce": (
        "txnctl.commands.produce.command:produce",
        "Append messages to a topic.",
    ),
    "consume": (
        "txnctl.commands.consume.command:consume",
        "Read a topic, or receive messages of a subscription.",
    ),
    "tables": (
        "txnctl.commands.tables.group:tables",
        "Tables: keys and values, with serializable transactions.",
    ),
    "pipeline": (
        "txnctl.commands.pipeline.group:pipeline",
        "Jobs on Apache Spark: files in and out, settling, watching, auditing.",
    ),
    "status": (
        "txnctl.commands.health.status:status",
        "Show the health of the store on one screen.",
    ),
    "top": (
        "txnctl.commands.health.top:top",
        "Watch the store on one live screen: problems, rates, topics, transactions, consumers.",
    ),
    "doctor": (
        "txnctl.commands.health.doctor:doctor",
        "List problems in plain words, with the reason and the next command.",
    ),
    "check": (
        "txnctl.commands.health.check:check",
        "Measure the store for monitoring, and compare with thresholds.",
    ),
    "report": (
        "txnctl.commands.report:report",
        "Write one page about the store, to look at or to attach to an incident.",
    ),
    "demo": (
        "txnctl.commands.demo:demo",
        "Tell the bank's story in a new store, and check every balance.",
    ),
    "audit": ("txnctl.commands.audit:audit", "Who changed what, when, and why."),
    "config": ("txnctl.commands.config:config", "Show what options and environment variables add up to."),
    "errors": ("txnctl.commands.errors:errors", "List the error codes, explain one."),
    "help": ("txnctl.commands.help:help_", "Show the help of a command, as --help after it does."),
    "completion": (
        "txnctl.commands.completion:completion",
        "Print the completion script of a shell.",
    ),
    "version": (
        "txnctl.commands.version:version",
        "Print the versions of txnctl, Python and the libraries.",
    ),
}
"""Name -> (module and attribute, summary in `txnctl --help`)."""


class Section(NamedTuple):
    """Commands under one title in the help, with an example to type."""

    title: str
    names: tuple[str, ...]
    example: str


SECTIONS = (
    Section(
        "Data",
        ("topics", "produce", "consume", "tables", "pipeline"),
        "txnctl produce orders -m hello --create",
    ),
    Section(
        "Administration",
        ("subscriptions", "producers", "transactions", "audit"),
        "txnctl subscriptions lag orders",
    ),
    Section(
        "When something is stuck",
        ("status", "top", "doctor", "check", "report"),
        "txnctl doctor",
    ),
    Section(
        "Set-up and help",
        ("store", "demo", "config", "errors", "help", "completion", "version"),
        "txnctl store init",
    ),
)
"""Every command of the top level, by purpose."""

RUNBOOK = "The runbook for stuck transactions: `man 7 txnctl-transactions`."
