"""Tests of holmes.core."""
