"""Tests of the toolset `logs/sources`, and of `kubernetes_logs` with sources of logs."""
