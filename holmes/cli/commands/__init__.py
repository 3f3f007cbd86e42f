"""The commands of the terminal, and the session that `holmes ask` keeps open."""
