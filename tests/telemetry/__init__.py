"""Tests of holmes.telemetry."""
