"""Topics: catalogue, state, ledgers, entries and messages."""
