"""Metrics and traces, off by default."""
