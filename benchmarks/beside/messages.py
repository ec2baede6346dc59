"""Questions to the process of a checkout, and its answers. Imports no argand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Draw:
    """The drawn cases, which are the same in every process, and where they run."""

    sweep: str
    cases: int
    seed: int
    device: str


@dataclass(frozen=True)
class Opened:
    """A call that is ready to be timed: what ran it, and the SHA-256 of its result."""

    plan: str
    digest: str


@dataclass(frozen=True)
class Times:
    """Microseconds of a call in a row of them: of the device, and of the host."""

    device_us: float
    host_us: float
