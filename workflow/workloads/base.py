"""What every kind of workload is: its parameters, its data, its computation, its truth.

To add a kind, add a file beside this one with a `Case` (the parameters, as they stand in a config)
and a `Workload` (what is done with them), decorated with `register`. The registry, the config's
schema and the tables find it by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from argand import Device, Precision

from workflow.config.case import Case as Case
from workflow.storage.drawn import Drawn, Stretched

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from workflow.accuracy import Accuracy

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Coordinate:
    """The values along one axis of an array, for people and plotting programs."""

    values: Array
    units: str = ""
    long_name: str = ""


@dataclass(frozen=True)
class Staged:
    """A workload's operands in the kind's canonical axes, and where they came from.

    ``operands`` maps a name to an array, ``axes`` the same name to the names of its axes, and
    ``coordinates`` the name of an axis to its values. ``attributes`` is provenance: seed, source,
    checksum, counts of non-finite values. All of it is kept in the staged file, and there the
    operands that are not in memory (``drawn``) are arrays like the others.
    """

    operands: Mapping[str, Array]
    axes: Mapping[str, tuple[str, ...]]
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    drawn: Mapping[str, Drawn | Stretched] = field(default_factory=dict)

    def held(self) -> Staged:
        """The same with all operands in memory."""
        made = {name: operand.held() for name, operand in self.drawn.items()}
        return replace(self, operands={**made, **self.operands}, drawn={})

    def axis_lengths(self) -> dict[str, int]:
        """The length of each axis of the operands: the largest, since 1 is broadcast."""
        lengths: dict[str, int] = {}
        for name, data in self.operands.items():
            for axis, length in zip(self.axes[name], data.shape, strict=True):
                lengths[axis] = max(length, lengths.get(axis, 0))
        return lengths


@dataclass(frozen=True)
class Product:
    """A workload's answer with its axes, ready to be written for others to open.

    ``axes`` names each axis of ``data`` in order; an axis without an entry in ``coordinates`` is
    numbered.
    """

    name: str
    data: Array
    axes: tuple[str, ...]
    coordinates: Mapping[str, Coordinate]
    title: str
    units: str = ""


@dataclass(frozen=True)
class Shape:
    """The sizes that a record reports, and the work they mean.

    ``flops`` are nominal (8 batch m n k for products), ``bytes_moved`` counts each operand read and
    each result written once at the size it has in device memory at that precision.
    """

    flops: float
    bytes_moved: float
    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    rows: int | None = None
    columns: int | None = None


def blank(shape: tuple[int, ...], dtype: npt.DTypeLike, value: int = 0) -> Array:
    """An array of one value that takes no memory, whatever its shape."""
    return np.broadcast_to(np.asarray(value, dtype), shape)


Computation = Callable[[Mapping[str, Any]], Any]
"""From operands in device memory (NumPy or CuPy arrays) to the result there: what is timed."""


@dataclass(frozen=True)
class Implementation:
    """One way to compute a workload: ours at a precision, or a peer's.

    ``prepare`` turns the staged operands (NumPy) into the ones that `compute` takes, before any
    clock starts: only what a user would have at hand already belongs there (types, layout).
    ``predicted_us`` is the time that it is expected to take, where there is a table of costs.
    ``steps`` is what it does, where that is its own choice and the work or the bound depends on it,
    in words that `Workload.as_computed` reads.
    """

    name: str
    precision: Precision
    algorithm: str
    compute: Computation
    prepare: Callable[[Mapping[str, Array]], Mapping[str, Array]]
    predicted_us: float | None = None
    steps: str = ""


class Workload(ABC):
    """One named workload of a study."""

    kind: ClassVar[str]
    case_type: ClassVar[type[Case]]
    operation: ClassVar[str] = ""
    """The package of argand that computes it, whose code decides what runs again; of all where none
    is named."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Kinds whose products this kind takes as ``input: {workload: name}``."""
    splits: ClassVar[tuple[str, ...]] = ()
    """Axes that operands and result have in common and along which entries do not depend on each
    other, the ones to split first foremost: `shards` and streaming take the first that is long
    enough. Empty where the kind has none."""

    result_like: ClassVar[str] = ""
    """The operand that the result has the shape of; empty where it is a product's (`Shape`)."""

    def __init__(self, name: str, case: Any, seed: int) -> None:
        self.name = name
        self.case = case
        self.seed = seed

    def rng(self, *key: int) -> np.random.Generator:
        """A generator that depends on the study's seed, the workload's name and a key alone."""
        entropy = [self.seed, *self.name.encode()]
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))

    @abstractmethod
    def staging(self, upstream: Path | None = None) -> Staged:
        """The operands: drawn as they are written, or read from a file, or from another's product.

        ``upstream`` is the product file of the workload that ``input.workload`` names.
        """

    def stage(self, upstream: Path | None = None) -> Staged:
        """The same (`staging`) with all operands in memory."""
        return self.staging(upstream).held()

    @abstractmethod
    def outline(self, upstream: Workload | None = None) -> Staged:
        """What `stage` will return, known from the config and the headers of the user's files.

        Its arrays have the shapes and types, but no values and no memory (`blank`); ``upstream`` is
        the workload whose product is read. Where a size shows only when staged, an upper bound.
        """

    @abstractmethod
    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """The sizes and the nominal work; reads no values but those of integer operands."""

    @abstractmethod
    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Our own computation at a precision."""

    @abstractmethod
    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """The peers that are installed and can compute this on the device."""

    @abstractmethod
    def reference(self, staged: Staged) -> Any:
        """The truth in fp64 by SciPy, computed once and shared by all precisions."""

    @abstractmethod
    def assess(
        self, staged: Staged, reference: Any, result: Array, precision: Precision, device: str
    ) -> Accuracy:
        """Errors of a result against `reference`, its a-priori bound, and whether it holds.

        ``device`` is the backend that computed it, ``cpu`` or ``cuda``: their bounds differ.
        """

    @abstractmethod
    def product(self, staged: Staged, result: Array) -> Product:
        """The answer with its axes."""

    @abstractmethod
    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the product as people of the field are used to seeing it."""

    def check(self) -> None:
        """Look for mistakes that only the user's files show, before any job starts.

        Raises ValueError (an `InputError` where a file is concerned) whose text starts with the key
        of the config that it is about, such as ``circuit.file``. Reads headers, no data.
        """
        return None

    def as_computed(self, staged: Staged, steps: str) -> Staged:
        """The operands with what an implementation made of them (`Implementation.steps`).

        `shape` and `assess` take these for its result; the same as staged in most kinds.
        """
        return staged

    def depends_on(self) -> str | None:
        """The workload whose product this one reads, if any."""
        return None


KINDS: dict[str, type[Workload]] = {}
"""Every kind by the name that a config uses; filled by `register`."""


def register(workload: type[Workload]) -> type[Workload]:
    """Class decorator: make a kind known under its name."""
    KINDS[workload.kind] = workload
    return workload
