"""Read-only answers about a store, each from one view."""
