"""Parts that several test packages share: servers that play a provider."""
