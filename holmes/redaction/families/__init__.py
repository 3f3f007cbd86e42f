"""The kinds of secrets that are known by their own shape or place: one family per file, each with a tuple `KINDS`."""
