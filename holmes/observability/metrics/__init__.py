"""Reads metrics, and describes series in numbers.

`prometheus` speaks the HTTP API of Prometheus, `queries` checks a query before it is sent, and `trends` finds what
changed in a series.
"""
