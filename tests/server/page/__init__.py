"""Tests of the page, most of them in real Chromium."""
