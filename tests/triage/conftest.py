"""Fails a test in which a rule failed, because a scan only notes this as not checked."""

from tests.diagnosis.failed_rules import failed_rules

__all__ = ["failed_rules"]
