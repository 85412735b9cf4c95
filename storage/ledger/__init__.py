"""Topics and their ledgers: what is appended, where, and how it is read back."""
