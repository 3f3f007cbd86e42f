"""The command line. It shows the events of a run."""
