"""`holmes serve`: the HTTP interface and the page. Knows nothing of the command line."""
