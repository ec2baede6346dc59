"""The command: draw calls, make them alone, let threads make them, and print the faults."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from argand.device import require_cupy

import benchmarks.crowd
from benchmarks.crowd.calls import draw
from benchmarks.crowd.card import CardCall, Counts
from benchmarks.crowd.worker import Made, Worker

_SHOWN = 40
_LOGGED = 4096


def main(argv: Sequence[str] | None = None) -> int:
    """Run a crowd; the exit status is 1 where there was a fault."""
    given = _parser().parse_args(argv)
    cupy = require_cupy()
    numbers = range(given.calls) if given.only is None else given.only
    calls = [draw(given.seed, number) for number in numbers]
    devices = range(cupy.cuda.runtime.getDeviceCount())
    begun = time.monotonic()
    with ThreadPoolExecutor(given.compilers) as pool:  # only so that their kernels are compiled
        list(pool.map(lambda call: CardCall(call, 0), calls))
    print(f"{len(calls)} calls compiled in {time.monotonic() - begun:.1f} s", flush=True)
    cards, faults = [], []
    for device in devices:
        with cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True):
            cards.append([CardCall(call, device) for call in calls])
            faults += _alone(cards[-1])
    print(f"{len(faults)} faults of calls alone", flush=True)
    log: deque[Made] = deque(maxlen=_LOGGED)
    workers = [
        Worker(number, given.seed, cards, log, blocking=given.blocking and number % 2 == 1)
        for number in range(given.threads)
    ]
    until = time.monotonic() + given.seconds
    with ThreadPoolExecutor(given.threads) as pool:
        list(pool.map(lambda worker: worker.run(until), workers))
    steps: Counter[str] = Counter()
    for worker in workers:
        steps.update(worker.steps)
        faults += worker.faults
    for fault, times in Counter(faults).most_common(_SHOWN):
        print(f"{times} times: {fault}" if times > 1 else fault)
    print(f"{len(faults)} faults in {dict(steps)} of {given.threads} threads, seed {given.seed}")
    return int(bool(faults))


def _alone(calls: Sequence[CardCall]) -> list[str]:
    counts, faults = Counts(8 * len(calls)), []
    for one in calls:
        faults += one.alone(counts)
    return faults + counts.faults()


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        description=benchmarks.crowd.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--calls", type=int, default=60, help="drawn, each with kernels of its own")
    found.add_argument("--only", type=int, nargs="+", help="the calls of these numbers")
    found.add_argument("--threads", type=int, default=8)
    found.add_argument("--seconds", type=float, default=60.0, help="of the crowd itself")
    found.add_argument("--blocking", action="store_true", help="every second thread's streams")
    found.add_argument("--compilers", type=int, default=14, help="threads that compile before")
    return found


if __name__ == "__main__":
    sys.exit(main())
