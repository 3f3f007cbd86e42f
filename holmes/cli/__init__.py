"""The command line. Reads the event stream."""
