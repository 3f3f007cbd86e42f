"""Frozen values and protocols that all other packages use. This package performs no I/O.

`messages` defines conversations, and `events` defines the events of a run. `tools` and `model` define the interfaces of
tools and models. `findings` defines the findings and incidents of a diagnosis.
"""
