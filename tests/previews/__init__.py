"""Tests of holmes.previews."""
