"""Running tools and fitting their results into the context window."""
