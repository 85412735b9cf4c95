"""The calling process: clock, identity, kernel locks, background thread.

`lock_file` opens the lock file of a store, `byte_locks` asks the kernel for single bytes, `writer_gate` admits one
writer at a time in the order of `gate_queue`, `wake_page` has the words that processes sleep on by `futex`, and
`liveness` decides whether the process behind a lease is alive or dead.
"""
