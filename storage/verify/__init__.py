"""Verification: the invariants of docs/SEMANTICS.md proved again from the records on disk, one module an object."""
