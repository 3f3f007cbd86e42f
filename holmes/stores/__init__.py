"""Stores tool results and conversations on disk."""
