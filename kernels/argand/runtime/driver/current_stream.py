"""CuPy's current stream of a device, for a while."""

from __future__ import annotations

from typing import Any

import cupy

_current = cupy.cuda.get_current_stream


class OnStream:
    """A context in which CuPy works on a stream of the current device, and then as before.

    CuPy's own context returns to the stream of the context around it. Where the program has made
    another one current by ``use()``, its later work would be in the order of the wrong stream.
    """

    __slots__ = ("_before", "_stream")

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __enter__(self) -> Any:
        self._before = _current()
        self._stream.use()
        return self._stream

    def __exit__(self, *_: object) -> None:
        self._before.use()
