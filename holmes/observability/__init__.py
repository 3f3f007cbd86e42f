"""Reads what monitoring systems know about a cluster.

`access` opens a source within limits. `metrics` reads sources of metrics, and describes their series in numbers.
"""
