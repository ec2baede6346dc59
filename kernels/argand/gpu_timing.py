"""The clock of a GPU: events around calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def queued_seconds(calls: Sequence[Callable[[], object]], count: int) -> list[float]:
    """Seconds of each of ``count`` calls, taken in turn, between two events on the current stream.

    All are queued before the first is waited for, so that the host's part overlaps. Raises what a
    kernel did wrong.
    """
    import cupy

    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(count)]
    for index, (before, after) in enumerate(events):
        before.record()
        calls[index % len(calls)]()
        after.record()
    cupy.cuda.get_current_stream().synchronize()
    return [1e-3 * float(cupy.cuda.get_elapsed_time(*pair)) for pair in events]
