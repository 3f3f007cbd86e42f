"""Renders events, findings and answers for a terminal, a pipe or a file."""
