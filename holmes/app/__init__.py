"""The composition root, which builds investigators and servers from the settings."""
