"""Chats over HTTP: runs that clients follow, approvals, and what is kept of them."""
