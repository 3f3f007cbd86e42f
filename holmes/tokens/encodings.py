"""The tokenizer, from the files that the litellm package ships, found without importing it. Called by the counter.

Works offline and reads no environment. Whether an encoding is there can be asked before; who loads one that is not is
told so.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    import tiktoken

# tiktoken names the files of its cache by a hash of where they came from.
_FILE_NAMES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_CONTRACTION = "'(?i:[sdmt]|ll|ve|re)"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_PATTERNS = {
    "cl100k_base": (
        rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?+\p{{L}}++|\p{{N}}{{1,3}}+| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+(?:{_CONTRACTION})?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*(?:{_CONTRACTION})?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}


@functools.lru_cache(maxsize=4)
def encoding_file(name: str) -> Path | None:
    """Where the encoding lies, or None when it is unknown or this installation does not have it."""
    package = importlib.util.find_spec("litellm")
    folders = list(package.submodule_search_locations or ()) if package else []
    file_name = _FILE_NAMES.get(name, "")
    candidates = [Path(folder, "litellm_core_utils", "tokenizers", file_name) for folder in folders]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@functools.lru_cache(maxsize=2)
def load_encoding(name: str) -> tiktoken.Encoding:
    """The encoding from the files of the litellm package. Raises `HolmesError` when it is not there."""
    path = encoding_file(name)
    if path is None:
        known = ", ".join(_PATTERNS)
        raise HolmesError(f"token encoding {name!r} is not available; reinstall litellm or use one of: {known}")
    import tiktoken  # heavy, and only needed once something must be counted exactly

    ranks = {}
    with path.open("rb") as lines:
        for line in lines:
            token, _, rank = line.partition(b" ")
            ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(name=name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    # The tokenizer has its own copy of the ranks; this one is only for pickling, and takes 25 MB.
    encoding._mergeable_ranks = {}  # noqa: SLF001
    return encoding
