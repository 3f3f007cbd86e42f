"""The commands of the terminal, and the session of `holmes ask`."""
