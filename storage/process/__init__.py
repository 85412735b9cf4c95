"""The calling process: clock, identity, kernel locks, background thread.

`locks` opens the lock file of a store, `byte_locks` asks the kernel for single bytes, `writer_gate` admits one writer
at a time, and `liveness` decides whether the process behind a lease is alive or dead.
"""
