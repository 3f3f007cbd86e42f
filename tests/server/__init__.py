"""Tests of holmes.server."""
