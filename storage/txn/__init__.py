"""Transactions: the coordinator, the transaction buffer of a topic, the aborted set."""
