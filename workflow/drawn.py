"""Arrays that are made piece by piece while they are written, so that none is in memory whole.

A `Drawn` one is made in chunks of the file, each from its place alone: whatever has been made
before, and by whatever thread. So the same numbers come out of a file that was written in pieces
and of an array that was filled at once. A `Stretched` one comes in one order. Both are written
by `storage.drawn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from argand.device import available_cores

from workflow.chunk_places import chunk_offsets, chunk_shape, inside_of

Array = npt.NDArray[Any]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Box:
    """A stretch of every axis of an array."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    def along(self, axis: int) -> slice:
        """Return the box's stretch of one axis."""
        return slice(self.offset[axis], self.offset[axis] + self.shape[axis])

    @property
    def within(self) -> tuple[slice, ...]:
        """The box's place in the array."""
        return tuple(map(self.along, range(len(self.shape))))


@dataclass(frozen=True)
class Stretched:
    """An array that comes in stretches of an axis, from the first to the last.

    ``read`` gives them, each time that it is called: the first entry and the values, ``entries`` at
    a time except the last; ``entries`` is a power of two.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axis: int
    entries: int
    read: Callable[[], Iterable[tuple[int, Array]]]

    def changed(self, change: Callable[[Array], Array], dtype: np.dtype[Any]) -> Stretched:
        """Return a function of each stretch, of its shape and another type."""

        def read() -> Iterator[tuple[int, Array]]:
            for start, values in self.read():
                yield start, np.ascontiguousarray(change(values), dtype)

        return replace(self, dtype=dtype, read=read)

    def held(self) -> Array:
        """Return all of it, in memory."""
        whole = np.empty(self.shape, self.dtype)
        along = np.moveaxis(whole, self.axis, 0)
        for start, values in self.read():
            stretch = np.moveaxis(values, self.axis, 0)
            along[start : start + len(stretch)] = stretch
        return whole


@dataclass(frozen=True)
class Drawn:
    """An array of a shape and type; ``make`` makes any box of it, the same one every time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[Box], Array]

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of the pieces, except those at the edges."""
        return chunk_shape(self.shape, self.dtype.itemsize)

    def piece(self, offset: tuple[int, ...]) -> Array:
        """Return the piece that begins at ``offset``.

        Raises ValueError where ``make`` returns another shape or type.
        """
        box = Box(offset, inside_of(self.shape, self.chunks, offset))
        made = self.make(box)
        if (made.shape, made.dtype) != (box.shape, self.dtype):
            raise ValueError(
                f"a piece of {box} must be {self.dtype}, got {made.dtype} of {made.shape}"
            )
        return made

    def held(self) -> Array:
        """Return all of it, in memory."""
        whole = np.empty(self.shape, self.dtype)

        def fill(offset: tuple[int, ...]) -> None:
            piece = self.piece(offset)
            whole[Box(offset, piece.shape).within] = piece

        self._by_threads(fill)
        return whole

    def each(self, function: Callable[[Array], Found]) -> list[Found]:
        """Return a function's results for every piece, in their order."""
        return self._by_threads(lambda offset: function(self.piece(offset)))

    def _by_threads(self, function: Callable[[tuple[int, ...]], Found]) -> list[Found]:
        offsets = chunk_offsets([range(length) for length in self.shape], self.chunks)
        with ThreadPoolExecutor(available_cores()) as threads:
            return list(threads.map(function, offsets))
