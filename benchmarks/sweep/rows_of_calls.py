"""Times of calls in rows: between two events around many calls, not around each.

An event waits until the device has done all before it, and nothing after it begins meanwhile.
Around an empty kernel two of them read 5.8 us, while a row of such kernels takes 2.9 each, and 1.9
where each begins while the one before ends (an H200): that is what a program's calls take, and what
events between them hide.
"""

from __future__ import annotations

from itertools import cycle

from argand.runtime.measuring.timing import Calls, Queued, queued

_MAX_CALLS, _SECONDS = 32, 250e-6
"""Most calls of a row, and about the seconds that a row takes: an event is nothing of longer ones.
Rows of 32 calls of 2 us differ by a third of what rows of 16 do. The driver queues about a thousand
launches; a row and the one before it may take half of them."""


def row_length(seconds: float) -> int:
    """Return the calls of a row of calls that take so long; 1 for long ones."""
    return int(min(_MAX_CALLS, max(1, _SECONDS / seconds)))


def queued_rows(calls: Calls, rows: int, length: int) -> Queued:
    """Time rows of ``length`` calls, taken in turn, on a held stream; times are of one call.

    An untimed row comes before each: some calls choose their launches by whether the stream is
    behind the host (`argand.runtime.launch.backlog`), which they find within 130 us. Where a call
    itself waits for the device, times are without the hold, as in `queued`.
    """
    turn = cycle(calls)

    def row() -> None:
        for _ in range(length):
            next(turn)()

    seconds, host, held = [], [], True
    for _ in range(rows):
        found = queued([row], 2, held=held)
        held = found.held
        seconds.append(found.seconds[1] / length)
        host.append(found.host_seconds[1] / length)
    return Queued(seconds, host, held)
