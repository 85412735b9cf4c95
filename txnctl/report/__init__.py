"""The report of a store as one HTML page: a pure function from the rows of `Store.report` to text."""
