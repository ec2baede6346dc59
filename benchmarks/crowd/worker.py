"""A thread of a crowd: random calls on streams of its own, and graphs of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.crowd.card import CaptureError, CardCall, Counts, behind, captured

_PLACES = 256
"""Comparisons between two looks at their counts, for which the host waits."""
_MOST_GRAPHS = 4
_SPIN_CYCLES = 600_000
"""0.3 to 0.4 ms on a Hopper card, in which the host is some tens of calls ahead."""
_PLANNING = "cuFFT cannot plan"
"""Begins cuFFT's refusal to plan while a blocking stream is captured."""


@dataclass(frozen=True)
class Made:
    """A call of some thread, when it began and when it was queued, in seconds."""

    worker: int
    what: str
    begun: float
    queued: float


@dataclass
class _Graph:
    """A graph, its calls, and the memory that it reads and writes."""

    graph: Any
    calls: Sequence[CardCall]
    held: list[Any]


class Worker:
    """One thread's program. ``run`` is called in the thread; ``log`` is shared by all of them."""

    def __init__(
        self, number: int, seed: int, cards: Sequence[Sequence[CardCall]], log: deque[Made],
        *, blocking: bool,
    ) -> None:  # fmt: skip
        self._number, self._cards, self._log = number, cards, log
        self._rng = np.random.default_rng([seed, 1 << 20, number])
        self._blocking = blocking
        #: Texts of wrong results, and the number of steps by kind.
        self.faults: list[str] = []
        self.steps: dict[str, int] = {}

    def run(self, until: float) -> None:
        """Make steps until a time of `time.monotonic`."""
        import cupy

        self._streams, self._counts, self._graph_counts = [], [], []
        self._graphs: list[list[_Graph]] = [[] for _ in self._cards]
        for device in range(len(self._cards)):
            with cupy.cuda.Device(device):
                own = [cupy.cuda.Stream(non_blocking=not self._blocking) for _ in range(2)]
                own[0].use()
                self._streams.append(own)
                self._counts.append(Counts(_PLACES))
                self._graph_counts.append(Counts(1 << 14))
        steps = (self._calls, self._calls, self._calls_behind, self._capture, self._replay)
        while time.monotonic() < until:
            device = int(self._rng.integers(len(self._cards)))
            step = steps[int(self._rng.integers(len(steps)))]
            name = step.__name__.strip("_")
            self.steps[name] = self.steps.get(name, 0) + 1
            with cupy.cuda.Device(device):
                try:
                    step(device)
                except Exception as error:  # of any call: the program goes on
                    if _PLANNING not in str(error):
                        self._fault(f"{name}: {type(error).__name__}: {error}")
                if self._counts[device].is_full():
                    self._look(device)
        for device in range(len(self._cards)):
            with cupy.cuda.Device(device):
                self._look(device)
                self._streams[device][1].synchronize()
                self.faults += self._named(self._graph_counts[device].faults())

    def _fault(self, what: str) -> None:
        self.faults += self._named([what])

    def _named(self, faults: Sequence[str]) -> list[str]:
        return [f"thread {self._number}: {fault}" for fault in faults]

    def _look(self, device: int) -> None:
        self._streams[device][0].synchronize()
        self.faults += self._named(self._counts[device].faults())

    def _drawn(self, device: int) -> CardCall:
        calls = self._cards[device]
        return calls[int(self._rng.integers(len(calls)))]

    def _calls(self, device: int, how: str = "call") -> None:
        """Make one call, or several of a form, at the same memory or at other."""
        one, counts, begun = self._drawn(device), self._counts[device], time.monotonic()
        operands, out = one.operands(), one.result()
        for again in range(int(self._rng.integers(1, 6))):
            if counts.is_full():
                break
            if again and self._rng.random() < 0.3:
                operands, out = one.operands(), one.result()
            place = counts.place(f"{how} {again + 1} on GPU {device}: {one.call.name}")
            found = self._made_from(one, operands, out, device)
            counts.compare(place, found, one.expected)
            one.spoil(operands)
        self._note(one.call.name, begun)

    def _made_from(self, one: CardCall, operands: list[Any], out: Any, device: int) -> Any:
        """Make a call, at times while another GPU is the current one."""
        import cupy

        one.refill(operands)
        current = int(self._rng.integers(len(self._cards)))
        with cupy.cuda.Device(current if self._rng.random() < 0.3 else device):
            return one.made(operands, out)

    def _calls_behind(self, device: int) -> None:
        """Make some calls on a stream that is behind the host."""
        behind(_SPIN_CYCLES)
        for _ in range(6):
            self._calls(device, "call behind")

    def _capture(self, device: int) -> None:
        """Capture one to three calls into a graph."""
        calls = [self._drawn(device) for _ in range(int(self._rng.integers(1, 4)))]
        counts, begun = self._graph_counts[device], time.monotonic()
        if counts.is_full(len(calls)):
            return
        memory = [(one.operands(), one.result()) for one in calls]
        places = [counts.place(f"graph on GPU {device}: {one.call.name}") for one in calls]
        held: list[Any] = [memory]

        def queue() -> None:
            for one, (operands, out), place in zip(calls, memory, places, strict=True):
                held.append(one.compared(operands, out, counts, place))

        names = ", ".join(one.call.name for one in calls)
        try:
            graph = captured(queue)
        except CaptureError as error:
            if _PLANNING not in str(error):
                self._fault(f"capture of {names}: {error}; {self._meanwhile(begun)}")
            return
        finally:
            self._note(f"capture of {names}", begun)
        graphs = self._graphs[device]
        graphs.append(_Graph(graph, calls, held))
        if len(graphs) > _MOST_GRAPHS:
            del graphs[int(self._rng.integers(len(graphs)))]

    def _replay(self, device: int) -> None:
        """Replay a graph, at times on the second stream beside calls of the first."""
        graphs = self._graphs[device]
        if not graphs:
            return
        one, (first, second) = graphs[int(self._rng.integers(len(graphs)))], self._streams[device]
        if self._rng.random() < 0.5:
            one.graph.launch(first)
            return
        first.synchronize()
        for _ in range(int(self._rng.integers(1, 4))):
            one.graph.launch(second)
        self._calls(device, "call beside a graph")
        second.synchronize()

    def _note(self, what: str, begun: float) -> None:
        self._log.append(Made(self._number, what, begun, time.monotonic()))

    def _meanwhile(self, begun: float) -> str:
        """Return the calls, as text, that other threads queued since a time."""
        others = [x for x in list(self._log) if x.worker != self._number and x.queued > begun]
        return "meanwhile " + " | ".join(f"{x.worker}: {x.what}" for x in others[-12:])
