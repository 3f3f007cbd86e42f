"""Chats over HTTP: runs that clients follow, approvals and signed conversations."""
