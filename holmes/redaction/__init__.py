"""Masks secrets in every text before it is stored, summarised, sent or logged.

`redactor.Redactor` is the way in, `redact_message_off_loop` and `RedactingFilter` beside it use one for messages and
log records. `search` runs every finder over a text: `families` hold the kinds of secrets that have a shape of their
own, the other modules what a name, a place or an encoding gives away. `names.label_of` says whether a name is secret,
`escape_sequences.strip_escape_sequences` removes what only a terminal reads.
"""
