"""The default policy: the triggers and limits of HolmesGPT, with the changes in docs/context-management.md.

Its numbers are the defaults of `holmes.core.policy`.
"""

from __future__ import annotations

from holmes.core.policy import ContextPolicy

POLICY = ContextPolicy(name="balanced")
