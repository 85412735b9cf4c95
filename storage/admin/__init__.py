"""Audited changes by operators."""
