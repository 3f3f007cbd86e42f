"""Frozen values and protocols below everything else: messages, events, statistics, errors, tools, findings.

`messages` is a conversation, `events` what happens in an investigation, `tools` what a tool is, `model` what the loop
needs of a model, `findings` what a diagnosis found, `texts` cuts texts. No I/O.
"""
