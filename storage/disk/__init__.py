"""The disk: the LMDB environment of a store, and the only packing of bytes. Rooms above do not know LMDB.

The interface, which a second storage engine would have to offer to the rooms above:

    connection     one handle on a store: views, batches, leases, the number of the last commit, waiting for the next
    view           `ReadView` and `WriteBatch`: get, scan, put, delete, timestamps
    environment    behind a connection: copies, figures, readers, the lock file with the writer gate
    commit_wait    the wait for the next commit of any process
    read_cache     timestamps of serializable reads, shared by all processes: of keys (key_reads), of ranges
                   (range_reads, read_times), in a mapped file (read_cache_file, read_cache_layout)
    received_marks the last message that each consumer received, shared by all processes
    counters_file  counts of events and of the durations of flushes, for monitoring, in a mapped file
    schema, codec  the list of databases, and the packing of keys and values
    create         a new store, built in a build directory (build_dir) and then renamed to its path
    pages          the pages of the data file, checked without LMDB
    directory      the checks of a store's directory and files before they are opened
"""
