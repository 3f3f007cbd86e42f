"""Toolsets: the YAML engine and the toolsets written in Python."""
