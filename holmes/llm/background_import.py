"""An import that takes seconds, in a thread, and that can be given up. Called by `holmes.llm.litellm_loader`.

Python waits for no daemon thread when it ends, but it pulls the ground from under it, and an extension module that is
being imported at that moment writes its last words on the terminal. So the import is told to stop, which it does at
the next module it asks for. It refuses to be started twice: an import that was given up stays given up.
"""

from __future__ import annotations

import atexit
import sys
import threading
from concurrent.futures import Future
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Generic, TypeVar

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
