"""Toolsets that are YAML files: reading them, rendering their commands for bash, running them."""
