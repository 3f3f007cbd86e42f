"""Masks secrets in every text before it is stored, summarised, sent or logged.

`redactor` masks texts, messages and log records. The other modules find secrets by shape (`families`), name, position
or encoding. `names` decides whether a name belongs to a secret value. `views` removes escape sequences and decodes
texts.
"""
