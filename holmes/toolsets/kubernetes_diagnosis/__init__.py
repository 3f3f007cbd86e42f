"""Implements the toolset `kubernetes/diagnosis`, which detects faults by rules and finds related objects."""
