"""The disk: the records of a store, and the only packing of bytes. Rooms above do not know which engine keeps them.

connection     one handle on a store: views, batches, leases, the number of the last commit, waiting for the next
stores         the engine of a store, by the form of its name
environment    the interface of an engine: views, writer, locks, figures; in `lmdb/` and `postgres/`
view           `ReadView` and `WriteBatch`: get, scan, put, delete, timestamps; overlay keeps changes in memory
batch_runs     the prologue, the change, and changes that run again, for the writers of both engines
shared_state   what processes share beside the records: read cache, received marks; counters, for monitoring
schema, codec  the list of databases, and the packing of keys and values
"""
