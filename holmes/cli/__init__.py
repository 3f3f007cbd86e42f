"""The command line, which shows the events of a run."""
