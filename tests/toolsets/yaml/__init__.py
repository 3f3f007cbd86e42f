"""Tests of the YAML toolset engine."""
