"""Verification: the invariants of docs/SEMANTICS.md proved again from the disk, one module an object."""
