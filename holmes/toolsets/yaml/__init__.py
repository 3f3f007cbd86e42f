"""Reads toolsets from YAML files, renders their commands for bash, and runs these commands."""
