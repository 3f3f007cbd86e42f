"""Toolsets in YAML files: reads them, renders their commands for bash, and runs the commands."""
