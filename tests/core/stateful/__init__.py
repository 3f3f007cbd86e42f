"""Whole conversations: questions, restarts, compactions on request, full disks, overflows, cancelled runs."""
