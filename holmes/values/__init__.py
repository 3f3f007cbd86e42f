"""Frozen values and protocols below everything else: messages, events, statistics, errors, tools, findings."""
