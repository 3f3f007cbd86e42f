"""Toolset `kubernetes/diagnosis`: detects faults and their causes by rules, and finds objects related to an object."""
