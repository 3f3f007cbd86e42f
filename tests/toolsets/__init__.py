"""Tests of holmes.toolsets."""
