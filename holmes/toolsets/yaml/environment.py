"""The variables that a tool's process gets: what the user allows, and what the engine adds.

Called by the prerequisites and by `YamlToolset`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.values.environment import Environment

# A kuberc file changes the defaults of kubectl's options: `-o yaml` for `get` would show the values of Secrets.
# The first one is a feature gate, which ends when the feature is stable; the second one stays.
_WITHOUT_PREFERENCES = {"KUBECTL_KUBERC": "false", "KUBERC": "off"}
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def process_environment(environment: Environment) -> Environment:
    """`environment` with the folder of the interpreter at the end of `PATH`.

    Extras install programs such as kubectl there, and it is not on `PATH` when Holmes is run by its full path.
    kubectl is told to ignore the user's kuberc file.
    """
    path = environment.get("PATH") or _USUAL_PATH
    folder = str(Path(sys.executable).parent)
    if folder not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{folder}"
    return environment.with_variables({"PATH": path, **_WITHOUT_PREFERENCES})
