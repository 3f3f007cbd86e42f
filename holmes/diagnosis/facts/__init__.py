"""Extracts facts for rules from a cluster state, such as probes, log lines, host names and references.

The rules are in `holmes.diagnosis.rules`.
"""
