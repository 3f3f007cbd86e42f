"""Imports litellm once, in a daemon thread, and configures it.

The import takes several seconds and runs while toolsets are checked. A caller can stop waiting for the import. litellm
uses the bundled price map, sends no telemetry and prints nothing. No module imports litellm at module level.

Python does not wait for daemon threads when it exits. An extension module that is still being imported at that time
prints errors. Therefore, the import stops at its next module before Python exits. A stopped import cannot be restarted.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import sys
import threading
import warnings
from concurrent.futures import Future
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_STOP_TIMEOUT_SECONDS = 2.0


class ImportGivenUp(BaseException):
    """Stops the import. Modules with optional imports do not catch this error, because it is not an `Exception`."""


class _Gate(MetaPathFinder):
    """Import hook that, once closed, stops all further imports in one thread."""

    def __init__(self) -> None:
        self.thread_id: int | None = None
        self.is_closed = False

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002  the interface
        if self.is_closed and threading.get_ident() == self.thread_id:
            raise ImportGivenUp(fullname)


class BackgroundImport(Generic[T]):
    """Runs `load`, which imports modules, in a daemon thread. `future` receives its return value or its error.

    The import continues if a caller stops waiting for it. Only Python's exit stops the import.
    """

    def __init__(self, load: Callable[[], T], *, name: str) -> None:
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()  # a cancelled caller must not cancel other callers
        self._gate = _Gate()
        self._thread = threading.Thread(target=self._run, args=(load,), name=name, daemon=True)
        atexit.register(self.give_up)
        self._thread.start()

    @property
    def result(self) -> T | None:
        """The return value of `load`, or None if `load` failed or is still running."""
        future = self.future
        return future.result() if future.done() and future.exception() is None else None

    def give_up(self) -> None:
        """Stop the import at its next module, and wait for at most 2 seconds. The wait usually takes milliseconds."""
        self._gate.is_closed = True
        self._thread.join(_STOP_TIMEOUT_SECONDS)

    def _run(self, load: Callable[[], T]) -> None:
        self._gate.thread_id = threading.get_ident()
        sys.meta_path.insert(0, self._gate)
        try:
            self.future.set_result(load())
        except (ImportError, ImportGivenUp) as error:
            self.future.set_exception(error)
        finally:
            if not self.future.done():  # waiting callers must receive any other error too
                self.future.set_exception(sys.exception())
            sys.meta_path.remove(self._gate)
            atexit.unregister(self.give_up)


LitellmModule: TypeAlias = Any
"""The litellm module. Its types do not pass strict type checking, so callers narrow the values that they read."""

_lock = threading.Lock()
_imports: list[BackgroundImport[LitellmModule]] = []


def preload() -> Future[LitellmModule]:
    """Start the import in the background unless it has already started. Returns its future."""
    with _lock:
        if not _imports:
            prepare_environment()
            _imports.append(BackgroundImport(_import_litellm, name="litellm-import"))
        return _imports[0].future


def load_litellm() -> LitellmModule:
    """Wait for the import and return litellm.

    The first call takes several seconds and must not run on the event loop.
    """
    return preload().result()


async def litellm_module() -> LitellmModule:
    """Wait for the import and return litellm. If the call is cancelled, it stops at once and the import continues."""
    return await asyncio.wrap_future(preload())


async def close_connections() -> None:
    """Close the connections of all models in this process. Later requests open new connections.

    Does not import litellm.
    """
    litellm = _imports[0].result if _imports else None
    if litellm is None:
        return
    await litellm.close_litellm_async_clients()
    # litellm would reuse its closed clients, and has no public function that removes them.
    litellm.in_memory_llm_clients_cache.flush_cache()
    litellm.__dict__.pop("module_level_aclient", None)


def transport_errors() -> tuple[type[BaseException], ...]:
    """Return the error types that litellm and the HTTP client raise for a failed request."""
    import httpx
    import openai

    return (openai.OpenAIError, httpx.HTTPError, TimeoutError, OSError)


def prepare_environment() -> None:
    """Set variables before the import thread starts, because they must not change while another thread copies them."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # otherwise the import reads a .env file
    _unset_empty_keys()


def _import_litellm() -> LitellmModule:
    with _PausedCollector():
        import litellm
        import openai.resources.chat.completions  # noqa: F401  otherwise the first request imports it on the event loop

    from holmes.llm.watched_answer import watch_clients

    # Holmes validates the replies that it reads, so these warnings do not help the user.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    # Python shows this warning if Ctrl-C cancels a request while litellm is preparing it.
    warnings.filterwarnings("ignore", r"coroutine 'OpenAIChatCompletion\.\w+' was never awaited", RuntimeWarning)
    # The imports for some providers cause this warning.
    warnings.filterwarnings("ignore", "Items? '.*' on TypedDict", UserWarning)
    watch_clients(litellm)
    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    litellm.disable_hf_tokenizer_download = True  # otherwise litellm downloads a tokenizer to count tokens
    # An abandoned aiohttp session prints an error when the process ends; an httpx client does not.
    litellm.disable_aiohttp_transport = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _unset_empty_keys() -> None:
    """Remove empty key variables, because litellm would send them as keys. The settings also treat them as unset."""
    for name in [name for name, value in os.environ.items() if not value.strip() and name.endswith("_API_KEY")]:
        del os.environ[name]


class _PausedCollector:
    """Disables garbage collection during the import, which creates thousands of permanent objects.

    Later collections skip these objects, so collections do not delay the terminal.
    """

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.freeze()
        if self._was_enabled:
            gc.enable()
