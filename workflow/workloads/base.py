"""The protocol of a kind of workload: its parameters, its data, its computation, its truth.

To add a kind, add a file beside this one with a `Case` (the parameters, as they stand in a config)
and a `Workload` (what is done with them), decorated with `register`. The registry, the config's
schema, the tables, the tests of all kinds and the benchmarks find it by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision

from workflow.config.case import Case
from workflow.config.file_input import products_in
from workflow.data import Array, Coordinate, Product, Staged, blank
from workflow.implementation import Implementation, OtherWork, Shape
from workflow.inputs import operands
from workflow.storage.products import read_outline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from workflow.accuracy import Accuracy
    from workflow.records import Record


NOTHING: Mapping[str, Any] = {}
"""No products of other workloads."""
_PLAN = "plan"


def plan_words_of(staged: Staged) -> str:
    """Return the plan that computed a result, from `Workload.as_computed`.

    It is empty where none is named.
    """
    return str(staged.attributes.get(_PLAN, ""))


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
    enough. Empty where the kind has none. Where a study names the axes, see `split_axes`."""

    caption: ClassVar[str] = ""
    """The caption of `picture`, in a sentence or two."""

    small: ClassVar[Mapping[str, Any]]
    """Keys of a case of milliseconds, that tests of every kind compute and verify."""
    common: ClassVar[Mapping[str, Any]] = {}
    """Keys that make of `small` a case of some megabytes, for which a job loads the libraries and
    compiles the kernels that it does for most (`benchmarks.pipeline.job_memory`)."""

    reference_copies: ClassVar[float] = 0.0
    """Memory that `reference` takes, over that of operands and result in fp64, where that is more
    than verifications take anyway (`workflow.preflight.estimates`)."""
    reference_flops: ClassVar[float | None] = None
    """Operations of `reference` over those of `shape`; None where it samples what is large."""
    reference_repeats: ClassVar[bool] = True
    """Whether `reference` has the `other_work` of a call, too."""

    variants: ClassVar[tuple[str, ...]] = ()
    """Names of cases with another product; errors are planted into the results of each."""
    result_like: ClassVar[str] = ""
    """The operand that the result has the shape of; empty where it has its own (`result_shape`)."""
    real_result: ClassVar[bool] = False
    """Whether the result is real though the operands are complex."""
    wide_result: ClassVar[bool] = False
    """Whether the result is in fp64 at every precision."""
    peers_hold_batch: ClassVar[bool] = True
    """Whether a peer holds the products (`Shape`) of a whole batch at once, or one at a time."""

    def __init__(self, name: str, case: Any, seed: int) -> None:
        self.name = name
        self.case = case
        self.seed = seed

    @classmethod
    def for_case(cls, case: Any) -> type[Workload]:
        """Return the class of a case: this one, where its options do not lead to another."""
        return cls

    def rng(self, *key: int) -> np.random.Generator:
        """Return a generator that depends on the study's seed, the workload's name and a key."""
        entropy = [self.seed, *self.name.encode()]
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """Return keys of a small case drawn with ``rng``, whose results errors are planted into.

        Sizes of any magnitude up to a few thousand values, and the options that decide how a
        result is computed or bounded (`benchmarks.planted`); `small` where a kind draws none.
        """
        return dict(cls.small)

    @classmethod
    def drawn_variant(cls, rng: np.random.Generator, variant: str) -> dict[str, Any]:
        """Return keys as `drawn` of one of the ``variants``; raises ValueError for another name."""
        raise ValueError(f"variant must be one of {list(cls.variants)}, got {variant!r}")

    @abstractmethod
    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands: drawn as they are written, or from a file or others' products.

        ``upstream`` are the product files of the workloads that `depends_on` names.
        """

    def stage(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands as `staging` does, with all of them in memory."""
        return self.staging(upstream).held()

    def run_copies(self, outline: Staged) -> float:
        """Return the peak memory of a run on a CPU, over that of operands and result in fp64.

        It has the data as they were staged, those in fp64, and the arrays of its largest call:
        together at most 2.1, as seen with 200 to 350 MB.
        """
        return 2.1

    @abstractmethod
    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """Return the outline of `stage`, known from the config and the headers of the user's files.

        Its arrays have the shapes and types, but no values and no memory (`blank`); ``upstream``
        are the outlines of the products that are read (`product_outline`). Where a size shows only
        when staged, an upper bound.
        """

    def product_outline(self, outline: Staged) -> Product:
        """Return the product of what is outlined, without values, at the widest precision."""
        return self.product(outline, blank(self.result_shape(outline), self.widest_result(outline)))

    def widest_result(self, outline: Staged) -> type[np.float64 | np.complex128]:
        """Return the type of the result at the widest precision."""
        like = outline.operands[self.result_like] if self.result_like else None
        real = self.real_result or (like is not None and like.dtype.kind == "f")
        return np.float64 if real else np.complex128

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return the shape of the result for operands of these shapes."""
        return outline.operands[self.result_like].shape

    def intermediate_bytes(self, outline: Staged) -> int:
        """Return the bytes in fp64 that a job makes between operands and result: 0 in most kinds.

        Jobs ask for memory for it, and verify in pieces where it is large.
        """
        return 0

    def product_bytes(self, outline: Staged, written: int) -> int:
        """Return the bytes of a product beside its outline's coordinates: ``written`` in most."""
        return written

    def coordinate_bytes(self, outline: Staged) -> int:
        """Return the bytes of a product's coordinates, which the outline does not make.

        `product` makes them in every job, so a check first asks whether they fit into memory.
        """
        return sum(one.values.nbytes for one in outline.coordinates.values())

    @abstractmethod
    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return the sizes and the nominal work; reads no values but those of integer operands."""

    def other_work(self, outline: Staged) -> OtherWork:
        """Return the work beside products; in most kinds none of it takes long."""
        return OtherWork()

    @abstractmethod
    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return our own computation at a precision."""

    @abstractmethod
    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return the peers that are installed and can compute this on the device."""

    @abstractmethod
    def reference(self, staged: Staged) -> Any:
        """Return the truth in fp64 by SciPy, computed once and shared by all precisions."""

    @abstractmethod
    def assess(
        self, staged: Staged, reference: Any, result: Array, precision: Precision, device: str
    ) -> Accuracy:
        """Return a result's errors against `reference`, its a-priori bound, and whether it holds.

        ``device`` is the backend that computed it, ``cpu`` or ``cuda``: their bounds differ.
        """

    @abstractmethod
    def product(self, staged: Staged, result: Array) -> Product:
        """Return the answer with its axes."""

    def record_coordinates(self, records: Sequence[Record]) -> dict[str, Coordinate]:
        """Return coordinates of the product that say what the records of all precisions found."""
        return {}

    @abstractmethod
    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the product as people of the field are used to seeing it."""

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Look for mistakes that only files and others' products show, before any job starts.

        ``upstream`` is as in `outline`. Raises ValueError (an `InputError` where a file is
        concerned) whose text starts with the key of the config that it is about, such as
        ``circuit.file``. Reads headers, no data.
        """
        return None

    def check_again(self, upstream: Mapping[str, Path]) -> None:
        """Repeat `check` with the product files themselves: files may have changed since."""
        self.check({name: read_outline(path) for name, path in upstream.items()})

    def staged_input(
        self, layout: Sequence[operands.Operand], upstream: Mapping[str, Path]
    ) -> Staged:
        """Return the operands that the case's input names, once `check_again` has found no mistake.

        Raises InputError as `workflow.inputs.operands.staged` does.
        """
        self.check_again(upstream)
        allow = self.case.lets_nonfinite_in
        return operands.staged(self.case.input, layout, upstream, allow_nonfinite=allow)

    def as_computed(self, staged: Staged, plan_words: str) -> Staged:
        """Return operands with what an implementation made of them (`Implementation.plan_words`).

        `shape` and `assess` take these for its result, and read the words by `plan_words_of`; the
        same as staged where there are none.
        """
        if not plan_words:
            return staged
        return replace(staged, attributes={**staged.attributes, _PLAN: plan_words})

    def remark(self, staged: Staged) -> str:
        """Return a remark on the operands before a result is trusted, or "" where nothing is.

        The line of the stage step begins with it.
        """
        return ""

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return ``splits`` for operands with these axes, whose names may be the study's own."""
        return self.splits

    def depends_on(self) -> tuple[str, ...]:
        """Return the workloads whose products this one reads."""
        return tuple(dict.fromkeys(products_in(self.case.data_source).values()))


KINDS: dict[str, type[Workload]] = {}
"""Every kind by the name that a config uses; filled by `register`."""


def register(workload: type[Workload]) -> type[Workload]:
    """Make a kind known under its name and return it: a class decorator."""
    KINDS[workload.kind] = workload
    return workload


def log_uniform(rng: np.random.Generator, least: int, most: int) -> int:
    """Return an integer from ``least`` to ``most``, whose logarithm is drawn uniformly."""
    return int(least * (most / least) ** rng.random())
