"""The installed command against a real cluster and a scripted provider."""
