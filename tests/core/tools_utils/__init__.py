"""Tests of holmes.core/tools_utils."""
