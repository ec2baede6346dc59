"""Places of an array's chunks, and the part of each that a part of the array has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

CHUNK_BYTES = 1 << 20


def chunk_shape(
    shape: Sequence[int],
    itemsize: int,
    most: Mapping[int, int] | None = None,
    size: int = CHUNK_BYTES,
) -> tuple[int, ...]:
    """Return whole trailing axes as long as they fit in a chunk, then a piece of the next one.

    A chunk has at most ``size`` bytes, or one element. ``most`` bounds its length along some axes;
    it is then not contiguous in the array.
    """
    room = max(1, size // itemsize)
    lengths: list[int] = []
    for axis in reversed(range(len(shape))):
        allowed = min(shape[axis], (most or {}).get(axis, shape[axis]))
        lengths.insert(0, max(1, min(allowed, room)))
        room = max(1, room // max(allowed, 1))
    return tuple(lengths)


def chunk_offsets(ranges: Sequence[range], chunk: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return where the chunks begin that a part meets, in the order of the array."""
    places = [
        range(span.start // size * size, span.stop, size)
        for span, size in zip(ranges, chunk, strict=True)
    ]
    return _every(places)


def is_in_box(offset: Sequence[int], chunk: Sequence[int], box: Sequence[range]) -> bool:
    """Return whether a chunk that begins at ``offset`` has elements of a box."""
    places = zip(offset, chunk, box, strict=True)
    return all(at < span.stop and span.start < at + length for at, length, span in places)


def _every(places: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield the product of ranges, the last one fastest.

    `itertools.product` would make each whole.
    """
    if not places:
        yield ()
        return
    for outer in _every(places[:-1]):
        for last in places[-1]:
            yield (*outer, last)


Place = tuple[slice, ...]


def overlap(
    ranges: Sequence[range], offset: Sequence[int], inside: Sequence[int]
) -> tuple[Place, Place]:
    """Return where a chunk's values go in a part, and which of the chunk's values those are."""
    to, of = [], []
    for span, start, length in zip(ranges, offset, inside, strict=True):
        first, last = max(span.start, start), min(span.stop, start + length)
        to.append(slice(first - span.start, last - span.start))
        of.append(slice(first - start, last - start))
    return tuple(to), tuple(of)


def inside_of(shape: Sequence[int], chunk: Sequence[int], offset: Sequence[int]) -> tuple[int, ...]:
    """Return the part of a chunk that lies within the array: all of it but at the edges."""
    return tuple(
        min(size, length - start) for length, size, start in zip(shape, chunk, offset, strict=True)
    )
