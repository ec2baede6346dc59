"""Kernels of a call, what each reads and writes, and which of them have to wait for which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # their modules need CuPy
    from argand.runtime.launch.arguments import Address
    from argand.runtime.launch.kernel import BoundKernel

PROOF, IMAGE, VECTOR, SUMS = "proof", "B' x", "B' x modulo the prime", "C' x - A'(B' x)"
"""Parts of the workspace of a proof; each kernel that adds to the sums has a part of them."""


class KernelLaunch(NamedTuple):
    """A kernel of a call, and the addresses in its arguments and of its tensor maps.

    ``reads`` and ``writes`` name the parts of the workspace that other kernels of the call write.
    """

    kernel: BoundKernel
    members: dict[str, Address]
    maps: tuple[Address, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class ProofArguments(NamedTuple):
    """Arguments of a kernel that works for a proof; the other fields are those of `KernelLaunch`.

    ``values`` are arguments.
    """

    values: dict[str, int | float]
    members: dict[str, Address]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def dependencies(launches: Sequence[KernelLaunch]) -> list[list[int]]:
    """Return the numbers of earlier launches that each launch has to wait for.

    It waits for what wrote a part that it reads or writes, and for what read a part that it writes;
    not for what one of these waits for in any case.
    """
    found: list[list[int]] = []
    before: list[int] = []  # sets of numbers, as bits: calls in small pieces have thousands
    writer: dict[str, int] = {}
    readers: defaultdict[str, set[int]] = defaultdict(set)
    for number, launch in enumerate(launches):
        waits = {writer[part] for part in (*launch.reads, *launch.writes) if part in writer}
        for part in launch.writes:
            waits |= readers.pop(part, set())
        implied, direct = 0, 0
        for other in waits:
            implied |= before[other]
            direct |= 1 << other
        found.append(sorted(other for other in waits if not implied >> other & 1))
        before.append(direct | implied)
        for part in launch.reads:
            readers[part].add(number)
        for part in launch.writes:
            writer[part] = number
    return found
