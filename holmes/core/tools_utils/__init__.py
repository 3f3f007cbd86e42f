"""Runs tools and fits their results into the context window."""
