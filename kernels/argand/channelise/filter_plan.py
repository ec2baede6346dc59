"""The filter alone: its source, and how spectra are divided. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from argand.channelise.plan import UNITS
from argand.channelise.problem import ChanneliseProblem
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

FILTER_THREADS = 256
FLOAT64 = "float64"
"""The type of components at fp64; others are summed in fp32."""
_TOGETHER = 4
"""Spectra of a thread at a time (`kTogether` of cuda/channelise/filter.cuh)."""
_SHORTEST = 4 * _TOGETHER
"""Spectra of a chunk at least: a chunk reads the taps of its first one alone."""
_FLAT_NUMBERS = 4096
"""Numbers of a block where none are shared."""
_BLOCKS = 16
"""Blocks for each multiprocessor, where spectra are enough for as many chunks."""
# FilterArguments of cuda/channelise/plan.cuh.
FILTER_ARGUMENTS = (
    ("const void*", "x"), ("void*", "out"), ("const void*", "coefficients"), ("int64", "samples"),
    ("int64", "first"), ("int64", "count"), ("int64", "items"), ("int64", "chunks"),
    ("int64", "chunk"),
    *(("int", name) for name in (
        "channels", "taps", "hop", "phases", "columns", "column_blocks",
    )),
)  # fmt: skip


FilterForm = Literal["sliding", "flat"]
"""How threads share samples: those of a phase's spectra one frame apart, or not at all."""


@dataclass(frozen=True)
class FilterChunks:
    """The division of a launch's spectra among blocks.

    Attributes:
        columns: residues of a block; a block of few has several chunks beside each other.
        column_blocks: blocks of a spectrum.
        chunks: chunks of the spectra of a row and phase.
        chunk: spectra of one.
        items: rows, phases and chunks.
        blocks: blocks of the grid.
    """

    columns: int
    column_blocks: int
    chunks: int
    chunk: int
    items: int
    blocks: int


def filter_chunks(problem: ChanneliseProblem, rows: int, count: int, sm_count: int) -> FilterChunks:
    """Return how ``count`` spectra of each of ``rows`` are divided among the multiprocessors."""
    if filter_form(problem) == "flat":
        chunk = max(1, _FLAT_NUMBERS // problem.channels)
        chunks = -(-count // chunk)
        return FilterChunks(problem.channels, 1, chunks, chunk, rows * chunks, rows * chunks)
    columns = min(problem.channels, FILTER_THREADS)
    column_blocks = -(-problem.channels // columns)
    beside = FILTER_THREADS // columns
    of_phase = -(-count // problem.phases)
    apart = rows * problem.phases
    chunks = max(1, _BLOCKS * sm_count * beside // (column_blocks * apart))
    chunk = max(_SHORTEST, -(-of_phase // chunks))
    chunk = -(-chunk // _TOGETHER) * _TOGETHER
    chunks = -(-of_phase // chunk)
    items = apart * chunks
    return FilterChunks(
        columns, column_blocks, chunks, chunk, items, -(-items // beside) * column_blocks
    )


def filter_form(problem: ChanneliseProblem) -> FilterForm:
    """Return how threads share the samples of a problem.

    Spectra of a phase that are several frames apart share few samples, and a block of one phase
    writes short frames in pieces of lines.
    """
    return "sliding" if problem.frames == 1 else "flat"


def filter_name(component: str, *, real: bool, form: FilterForm) -> str:
    """Return the name of the filter alone, for samples of components of a type."""
    return f"channelise_filter_{component}_{'real' if real else 'complex'}_{form}"


def filter_source(component: str, *, real: bool, form: FilterForm) -> str:
    """Return the CUDA C++ of the filter alone; ``component`` is of `read_as`, or float64."""
    number = "double" if component.endswith(FLOAT64) else "float"
    # The kind of fp64 says alone whether samples are conjugates.
    kind = UNITS[component.replace(FLOAT64, "float32")][0]
    arguments = listed(number, f"Component::{kind}", real)
    call = f"filter_{'flat' if form == 'flat' else 'samples'}<{arguments}>(args)"
    return (
        '#include "channelise/filter.cuh"\n'
        f"{size_check('FilterArguments', FILTER_ARGUMENTS)}"
        f"static_assert(kTogether == {_TOGETHER});\n"
        + kernel_entry(
            filter_name(component, real=real, form=form),
            "FilterArguments",
            f"{call};",
            FILTER_THREADS,
        )
    )
