"""Provides metrics and traces, which are off by default."""
