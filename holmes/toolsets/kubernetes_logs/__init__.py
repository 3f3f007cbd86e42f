"""Implements the toolset `kubernetes/logs`, which reads container logs by pod or workload."""
