"""Runs each queued investigation until it finishes, as a durable workflow."""
