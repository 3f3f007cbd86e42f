"""The built-in model `builtin/triage`: answers questions about a cluster by rules, without an LLM. This is the door."""

from holmes.triage.model import TRIAGE_MODEL, TriageModel

__all__ = ["TRIAGE_MODEL", "TriageModel"]
