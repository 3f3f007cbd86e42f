"""Masks secrets in every text before it is stored, summarised, sent or logged. Called through `redactor.Redactor`."""
