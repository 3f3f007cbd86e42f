"""Implements the toolset `logs/sources`, which queries stored logs. `kubernetes/logs` reads the same sources."""
