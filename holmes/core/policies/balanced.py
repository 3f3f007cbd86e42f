"""The default policy: triggers and limits of HolmesGPT, adapted as docs/context-management.md describes.

Its numbers are the defaults of `holmes.core.policy`.
"""

from __future__ import annotations

from holmes.core.policy import ContextPolicy

POLICY = ContextPolicy(name="balanced")
