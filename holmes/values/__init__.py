"""Frozen values and protocols below all other packages, without I/O.

`messages` is a conversation, `events` what a run emits, `tools` the interface of tools, `model` the interface of
models, `findings` the results of a diagnosis.
"""
