"""Tests of the sources of logs."""
