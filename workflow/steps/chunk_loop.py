"""Data that exceed a device's memory pass through it in chunks, and nothing waits for another.

While a chunk is computed the next ones are read and copied to the device and the last ones are
copied back and written. Host memory holds a fixed number of chunks, however many there are.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.steps.transfer import WRITES, Compute, PendingChunk, Transfer
from workflow.storage.slabs import SlabReader

Array = npt.NDArray[Any]
_READS = 2
"""Chunks that are read before they are computed."""


@dataclass
class Busy:
    """Seconds that each part was at work; in a good stream one of them is nearly ``elapsed``."""

    read: float = 0.0
    computed: float = 0.0
    written: float = 0.0
    elapsed: float = 0.0
    chunks: int = 0


@dataclass(frozen=True)
class Streamed:
    """An operand that comes in chunks, in the type that the computation takes."""

    reader: SlabReader
    dtype: np.dtype[Any]


class ChunkTooLargeError(MemoryError):
    """A chunk did not fit on the device; all entries before ``position`` are written."""

    def __init__(self, position: int, reason: MemoryError) -> None:
        super().__init__(str(reason))
        self.position = position


@dataclass
class Stream:
    """A computation over chunks of its operands.

    Args:
        operands: the operands that come in chunks, all with ``length`` entries along their axis.
        transfer: copies to the device and back; it keeps the other operands.
        compute: returns a chunk's result from its operands.
        write: takes a chunk's first entry and its result, in a thread of its own.
        on_written: is called with the number of entries written so far.
    """

    operands: Mapping[str, Streamed]
    transfer: Transfer
    compute: Compute
    write: Callable[[int, Array], None]
    on_written: Callable[[int], None]
    busy: Busy = field(default_factory=Busy)
    _slots: list[dict[str, Array]] = field(default_factory=list, init=False)

    def first(self, entries: int) -> Array:
        """Return the result of the first chunk, computed for its shape and type and to warm up.

        Raises MemoryError where it does not fit on the device.
        """
        slot = self._host_memory(entries)[0]
        self._read(range(entries), slot)
        chunk = self.transfer.start(self.compute, self._views(slot, entries))
        result = np.array(chunk.wait()[0])
        chunk.release()
        self.busy.read = 0.0  # of the run alone
        return result

    def run(self, start: int, length: int, entries: int) -> None:
        """Compute the entries from ``start`` in chunks of ``entries``.

        Raises ChunkTooLargeError where a chunk does not fit on the device, and what reading,
        computing or writing raise.
        """
        began = time.perf_counter()
        slots = self._host_memory(entries)
        spans = [range(at, min(at + entries, length)) for at in range(start, length, entries)]
        with _threads() as (reader, writer):
            pending: deque[tuple[range, PendingChunk]] = deque()
            reads: deque[Future[None]] = deque()
            writes: deque[Future[None]] = deque()

            def retire() -> None:
                """Hand the oldest chunk on to be written, once its result is there."""
                span, chunk = pending.popleft()
                result, seconds = chunk.wait()
                self.busy.computed += seconds
                writes.append(writer.submit(self._write, span, result, chunk))
                while len(writes) > WRITES:
                    writes.popleft().result()

            asked = 0
            for index, span in enumerate(spans):
                while len(pending) >= self.transfer.most_pending:
                    retire()
                # A slot is free once its last chunk has gone on.
                while asked < min(index + _READS + 1, len(spans)):
                    slot = slots[asked % len(slots)]
                    reads.append(reader.submit(self._read, spans[asked], slot))
                    asked += 1
                reads.popleft().result()
                try:
                    inputs = self._views(slots[index % len(slots)], len(span))
                    pending.append((span, self.transfer.start(self.compute, inputs)))
                except MemoryError as error:
                    while pending:
                        retire()
                    while writes:
                        writes.popleft().result()
                    raise ChunkTooLargeError(span.start, error) from error
            while pending:
                retire()
            while writes:
                writes.popleft().result()
        self.busy.elapsed += time.perf_counter() - began

    def _host_memory(self, entries: int) -> list[dict[str, Array]]:
        """Return slots for chunks of ``entries`` entries.

        They are kept, because pinned memory takes long to get.
        """
        sizes = {
            name: int(np.prod(one.reader.shape(entries))) * one.dtype.itemsize
            for name, one in self.operands.items()
        }
        if not self._slots or any(self._slots[0][name].nbytes < sizes[name] for name in sizes):
            self._slots = []  # before others are taken
            count = _READS + self.transfer.most_pending
            self._slots = [
                {name: self.transfer.empty(size) for name, size in sizes.items()}
                for _ in range(count)
            ]
        return self._slots

    def _views(self, slot: Mapping[str, Array], entries: int) -> dict[str, Array]:
        """Return the beginning of a slot as operands of ``entries`` entries."""
        found = {}
        for name, one in self.operands.items():
            shape = one.reader.shape(entries)
            size = int(np.prod(shape)) * one.dtype.itemsize
            found[name] = slot[name][:size].view(one.dtype).reshape(shape)
        return found

    def _read(self, span: range, slot: Mapping[str, Array]) -> None:
        began = time.perf_counter()
        for name, into in self._views(slot, len(span)).items():
            self.operands[name].reader.read(span.start, into)
        self.busy.read += time.perf_counter() - began

    def _write(self, span: range, result: Array, chunk: PendingChunk) -> None:
        began = time.perf_counter()
        try:
            self.write(span.start, result)
        finally:
            chunk.release()
        self.busy.written += time.perf_counter() - began
        self.busy.chunks += 1
        self.on_written(span.stop)


@contextmanager
def _threads() -> Iterator[tuple[ThreadPoolExecutor, ThreadPoolExecutor]]:
    """Yield a thread that reads and one that writes; at the end they drop what is not begun."""
    pools = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    try:
        yield pools
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)
