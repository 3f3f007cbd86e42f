"""Makes the chosen context the current one, for programs that read only kubeconfig files.

HOLMES_KUBE_CONTEXT is known only to Holmes. Any other program would read the current context of the file, which can be
that of another cluster.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.environment import Environment


@contextmanager
def current_context(environment: Environment) -> Iterator[Environment]:
    """Yield an environment in which KUBECONFIG has the chosen context as its current context.

    Without a chosen context, yields `environment`. The file that names the context exists until the block
    ends.
    """
    context = environment.get("HOLMES_KUBE_CONTEXT")
    if not context:
        yield environment
        return
    listed = environment.get("KUBECONFIG") or str(Path(environment.get("HOME") or "", ".kube", "config"))
    with tempfile.TemporaryDirectory(prefix="holmes-") as folder:
        file = Path(folder, "current-context.json")
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": context}), "utf-8")
        # kubectl uses the first file that names a current context, and some client libraries use the last one.
        yield environment.with_variables({"KUBECONFIG": os.pathsep.join((str(file), listed, str(file)))})
