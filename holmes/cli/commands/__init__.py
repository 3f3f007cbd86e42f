"""The subcommands of `holmes`, and the session of `holmes ask`."""
