"""Where results and conversations are kept."""
