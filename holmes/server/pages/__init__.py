"""The web pages: lists, incidents, investigations, stored results and the login."""
