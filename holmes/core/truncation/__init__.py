"""Keeping the conversation inside the context window."""
