"""Tests of holmes.core.truncation."""
