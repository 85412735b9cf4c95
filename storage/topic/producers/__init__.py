"""Producers of a topic: access modes, sessions, admission, ownership, epochs (PIP-68)."""
