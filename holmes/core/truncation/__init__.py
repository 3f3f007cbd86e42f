"""Keeps the conversation inside the context window."""
