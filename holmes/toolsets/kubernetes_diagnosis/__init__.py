"""Toolset `kubernetes/diagnosis`: what is broken and why, by rules, and what belongs to an object."""
