"""Tests of holmes.app: the parts put together."""
