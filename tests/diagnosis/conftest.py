"""Fixtures of the tests of the diagnosis."""

from tests.diagnosis.failed_rules import failed_rules

__all__ = ["failed_rules"]
