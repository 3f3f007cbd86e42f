"""Reads alert payloads, matches routes, and groups alerts into incidents and investigations."""
