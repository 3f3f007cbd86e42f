"""How events, findings and answers look on a terminal, in a pipe and in a file."""
