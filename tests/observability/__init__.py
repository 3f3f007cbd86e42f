"""Tests of holmes.observability."""
