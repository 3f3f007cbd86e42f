"""The command-line interface, which shows the events of a run."""
