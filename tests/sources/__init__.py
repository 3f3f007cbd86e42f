"""Tests of holmes.sources."""
