"""Reads traces, and describes them.

`source` has the protocol and values of a source. `jaeger` and `tempo` read one each. `tree` arranges the spans of a
trace, `critical_path` finds which of them decide its duration, and `comparison` finds which of them differ between slow
and fast traces.
"""
