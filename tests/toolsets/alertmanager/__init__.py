"""Tests of the toolset `alertmanager/alerts`."""
