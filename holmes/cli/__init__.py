"""The command line: reads the event stream, knows nothing of other faces."""
