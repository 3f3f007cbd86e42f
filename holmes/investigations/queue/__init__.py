"""Runs each queued investigation to its end, as a durable workflow."""
