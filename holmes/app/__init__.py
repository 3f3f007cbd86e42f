"""The composition root: builds investigators and servers from the settings."""
