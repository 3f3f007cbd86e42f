"""Tests of holmes.core.evidence."""
