"""Sources of logs: `source` has their protocol and values, `products` chooses one, and `fields` finds field names."""
