"""The only import of lmdb: a store's data file, opened, mapped, read in views and written in batches."""
