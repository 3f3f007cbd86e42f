"""What can be configured. The only package that reads the environment."""
