"""Implements the toolset `kubernetes/diagnosis`, which uses rules to detect faults, and finds related objects."""
