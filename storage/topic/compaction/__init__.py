"""The compacted view of a topic: the newest committed message of each key up to a horizon, at original positions."""
