"""Notifications about incidents, queued until they are delivered."""
