"""Tests of holmes.kubernetes."""
