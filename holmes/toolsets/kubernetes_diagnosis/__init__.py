"""Toolset `kubernetes/diagnosis`: finds faults and their causes by rules, and the related objects of an object."""
