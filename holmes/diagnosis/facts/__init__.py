"""Extracts facts for rules from a cluster state, such as probes, log lines, host names and references.

Contains no rules.
"""
