"""News of incidents on their way to destinations, until they are delivered."""
