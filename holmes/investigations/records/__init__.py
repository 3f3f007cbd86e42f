"""Records of incidents and investigations, and their database."""
