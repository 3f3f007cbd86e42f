"""Tests of the toolset `prometheus/metrics`."""
