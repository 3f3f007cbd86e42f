"""Tests of the toolsets in `toolsets/`, each against the kinds of its system and objects as controllers write them.

One folder for each toolset file: `kinds.yaml` (where the definitions come from), `objects.yaml`, `examples.yaml`
(calls, which are also the examples of docs/toolsets/) and `outputs/` (what the calls print).
"""
