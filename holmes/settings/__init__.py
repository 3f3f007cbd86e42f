"""The settings: everything that can be configured. Only this package reads the environment."""
