"""Brings the output of a command into the form that its tool promises with `parse`.

Called by `YamlToolset`, in a thread. Never fails: what is not what it claims to be stays text as it came.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import yaml

from holmes.yaml_documents import refuse_deep

if TYPE_CHECKING:
    from holmes.toolsets.yaml.definition import ParseFormat

# Parsed JSON takes about seven times its bytes in memory; what is larger stays as the command wrote it.
_LARGEST_PARSED_CHARACTERS = 5_000_000

_Loader: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: type[yaml.CSafeDumper | yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def normalised(text: str, parse: ParseFormat) -> str:
    """`json` and `yaml` are laid out anew with one value per line, `table` loses the padding of its columns."""
    if parse == "text" or not text.strip() or len(text) > _LARGEST_PARSED_CHARACTERS:
        return text
    match parse:
        case "json":
            return _json(text)
        case "yaml":
            return _yaml(text)
        case "table":
            return "\n".join(re.sub(r" {3,}", "  ", line.rstrip()) for line in text.splitlines()) + "\n"


def _json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1) + "\n"
    except (ValueError, RecursionError):
        return text


def _yaml(text: str) -> str:
    try:
        refuse_deep(text.encode(), source="")
        documents = list(yaml.load_all(text, Loader=_Loader))
        return str(yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000))
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
