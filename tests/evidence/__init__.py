"""Tests of holmes.evidence."""
