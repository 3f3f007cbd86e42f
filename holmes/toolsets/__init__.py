"""Toolsets: the YAML engine and the ones written in Python."""
