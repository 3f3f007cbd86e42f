"""The built-in model `builtin/triage`: answers questions about a cluster by rules, without an LLM. This is the door.

`question` says what is asked and `answers` which plan answers it: `why` with `report`, `inventory` with `tables`, or
`summary`. Names are found in `objects`, the cluster is asked in `lookups`.
"""

from holmes.triage.model import TRIAGE_MODEL, TriageModel

__all__ = ["TRIAGE_MODEL", "TriageModel"]
