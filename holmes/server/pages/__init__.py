"""The web page: lists, one investigation, its results, and the login."""
