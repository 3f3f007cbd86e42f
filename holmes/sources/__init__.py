"""Where alerts come from besides the webhook. Used by `holmes investigate`."""
