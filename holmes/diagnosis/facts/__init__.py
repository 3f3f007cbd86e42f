"""Reads facts for rules from a cluster state: probes, log lines, host names, selectors, references.

Contains no rules.
"""
