"""The engine of a store in a directory: one LMDB environment, and files beside it. Only this folder imports `lmdb`.

environment    the open store of one process: opening, closing, forking, figures
data_map       the memory map and its views; data_file opens it, writer commits to it
recorded_view  looks inside the writer gate; commit_wait sleeps until the next commit
read_cache     timestamps of serializable reads, shared by all processes: of keys (key_reads), of ranges
               (range_reads, read_times), in a mapped file (read_cache_file, read_cache_layout)
received_marks the last message that each consumer received; counters_file counts events; both in mapped files
reserve_file   room for changes that free space; preallocation makes room ahead of commits
create         a new store, built in a build directory (build_dir) and then renamed to its path
pages          the pages of the data file, checked without LMDB (page_layout)
directory      the checks of a store's directory and files before they are opened; reader_table its readers
"""
