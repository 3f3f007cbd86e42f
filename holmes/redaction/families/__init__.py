"""Kinds of secrets with a known shape or position. Each file contains one family in the tuple `KINDS`."""
