"""Changes of which the hold of the writer gate is measured."""
