"""Frozen values and protocols that all other packages use. This package performs no I/O.

`messages` defines conversations, `events` the events of a run, `tools` the interface of tools, `model` the interface of
models, and `findings` the results of a diagnosis.
"""
