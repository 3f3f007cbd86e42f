"""Tests of `holmes.destinations`."""
