"""The one place that imports litellm. Called by the modules of `holmes.llm`, and early by the application.

The import takes seconds, so it happens once, in a daemon thread, while toolsets are checked; nobody has to wait for it
in order to give up. Nothing is fetched (the price map is the packaged one), nothing is reported, nothing is printed. It
refuses to be imported at the top of another module.
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
    """Unwinds the import. Not an `Exception`: modules that can do without another one would swallow it."""


class _Gate(MetaPathFinder):
    """Asked for every module that is imported; refuses those of one thread once it is closed."""

    def __init__(self) -> None:
        self.thread_id: int | None = None
        self.is_closed = False

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002  the interface
        """Never finds anything."""
        if self.is_closed and threading.get_ident() == self.thread_id:
            raise ImportGivenUp(fullname)


class BackgroundImport(Generic[T]):
    """Calls `load`, which imports, in a daemon thread as soon as it is made. `future` gets what it returns or raises.

    Whoever stops waiting for the future does not stop the import; the end of the interpreter does.
    """

    def __init__(self, load: Callable[[], T], *, name: str) -> None:
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()  # a waiter that is cancelled must not cancel it for the others
        self._gate = _Gate()
        self._thread = threading.Thread(target=self._run, args=(load,), name=name, daemon=True)
        atexit.register(self.give_up)
        self._thread.start()

    @property
    def result(self) -> T | None:
        """What `load` returned, None as long as there is nothing."""
        future = self.future
        return future.result() if future.done() and future.exception() is None else None

    def give_up(self) -> None:
        """Stop at the next module. Waits for that, which takes milliseconds, and at most 2 seconds."""
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
            if not self.future.done():  # a library that fails in its own way: nobody must wait for it for ever
                self.future.set_exception(sys.exception())
            sys.meta_path.remove(self._gate)
            atexit.unregister(self.give_up)


LitellmModule: TypeAlias = Any
"""litellm ships no types that strict checking accepts; its values are narrowed where they enter."""

_lock = threading.Lock()
_imports: list[BackgroundImport[LitellmModule]] = []


def preload() -> Future[LitellmModule]:
    """Start the import, unless it was started before, so that it is under way while other things are prepared."""
    with _lock:
        if not _imports:
            _prepare_environment()
            _imports.append(BackgroundImport(_import_litellm, name="litellm-import"))
        return _imports[0].future


def load_litellm() -> LitellmModule:
    """The configured litellm; the first call takes seconds and must not run on the event loop."""
    return preload().result()


async def litellm_module() -> LitellmModule:
    """The configured litellm. Cancelling it returns at once; the import goes on by itself."""
    return await asyncio.wrap_future(preload())


async def close_connections() -> None:
    """Close the connections of every model of this process; those used later open new ones. Does not import litellm."""
    litellm = _imports[0].result if _imports else None
    if litellm is None:
        return
    await litellm.close_litellm_async_clients()
    # litellm has no public way to forget its clients: both would be used again, although they are closed.
    litellm.in_memory_llm_clients_cache.flush_cache()
    litellm.__dict__.pop("module_level_aclient", None)


def transport_errors() -> tuple[type[BaseException], ...]:
    """What litellm and the HTTP client below it raise when a request fails."""
    import httpx
    import openai

    return (openai.OpenAIError, httpx.HTTPError, TimeoutError, OSError)


def _prepare_environment() -> None:
    """Before the thread starts: variables must not change while another thread copies them."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # or its import reads a .env file that nobody named
    _unset_empty_keys()


def _import_litellm() -> LitellmModule:
    with _PausedCollector():
        import litellm
        import openai.resources.chat.completions  # noqa: F401  or the first request imports it on the event loop

    from holmes.llm.watched_answer import watch_clients

    # What odd providers send is judged where it is read; a warning about it on stderr helps nobody.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    warnings.filterwarnings("ignore", "Items? '.*' on TypedDict", UserWarning)  # of what it imports for some providers
    watch_clients(litellm)
    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    litellm.disable_hf_tokenizer_download = True  # or it fetches one to count what a provider did not count
    # An abandoned aiohttp session complains on stderr when the process ends; an httpx client does not.
    litellm.disable_aiohttp_transport = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _unset_empty_keys() -> None:
    """An empty variable counts as unset, here as in the settings; litellm would take it for a key and send it."""
    for name in [name for name, value in os.environ.items() if not value.strip() and name.endswith("_API_KEY")]:
        del os.environ[name]


class _PausedCollector:
    """No garbage collection while thousands of classes are created, none of which is garbage.

    They are then taken out of later collections, whose pauses would otherwise be felt in the terminal.
    """

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.freeze()
        if self._was_enabled:
            gc.enable()
