"""Toolset `kubernetes/logs`: container logs by pod or workload."""
