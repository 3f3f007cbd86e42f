"""Contains the engine for YAML toolsets and the toolsets that are written in Python."""
