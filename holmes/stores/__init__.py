"""Stores of tool results and conversations on disk."""
