"""Arguments and CUDA C++ of the kernels of readout. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from argand.runtime.compile.cpp import literal
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.complex_types import REAL
from argand.runtime.launch.arguments import Fields, size_check

THREADS = 256
SCAN_THREADS = COUNT_THREADS = 1024
BLOCK_CELLS = 256
MARGINAL_CHUNKS = 4
CHUNK = 16
"""Bytes that a thread loads at once."""
REGISTER_BITS, LANE_BITS, LANE_FLIPS = 4, 5, 2
PAIRS = 2 + REGISTER_BITS + LANE_FLIPS
MAX_STRINGS = 16
"""Pauli strings of one pass over a state."""
MAX_SEGMENTS, MAX_CHOSEN, MAX_RUNS = 34, 34, 17

SAMPLE_ARGUMENTS: Fields = (
    ("const void*", "state"), ("uint64*", "cell_ends"), ("uint64*", "block_ends"),
    ("double*", "block_norms"), ("void*", "found"), ("int64", "amplitudes"), ("int64", "blocks"),
    ("int64", "shots"), ("int64", "seed"), ("double", "scale"), ("int64", "found_is_int32"),
)  # fmt: skip
COUNT_ARGUMENTS: Fields = (
    ("const int*", "shots"),
    ("int64*", "outcomes"),
    ("int64*", "counts"),
    ("int64*", "found"),
    ("int", "count"),
    ("int", "capacity"),
)
MARGINAL_ARGUMENTS: Fields = (
    ("const void*", "state"), ("double*", "partials"), ("int64", "tiles"), ("int64", "amplitudes"),
    ("int64", f"free_mask[{MAX_SEGMENTS}]"), ("int64", f"high_mask[{MAX_SEGMENTS}]"),
    ("int", f"free_shift[{MAX_SEGMENTS}]"), ("int", f"high_shift[{MAX_SEGMENTS}]"),
    ("int", f"low_bit[{MAX_CHOSEN}]"), ("int", "free_segments"), ("int", "high_segments"),
    ("int", "low_count"), ("int", "shares"), ("int", "high_settings"), ("int", "place_mask"),
    ("int", f"order[{MAX_CHOSEN}]"),
)  # fmt: skip
FINISH_ARGUMENTS: Fields = (
    ("const double*", "partials"), ("double*", "out"), ("int64", "outcomes"),
    ("int", "low_count"), ("int", "shares"), ("int", "lanes"), ("int", f"order[{MAX_CHOSEN}]"),
)  # fmt: skip
PAULI_ARGUMENTS: Fields = (
    ("const void*", "state"), ("double*", "partials"), ("int64", "tiles"),
    ("int64", f"register_mask[{REGISTER_BITS}]"), ("int64", f"lane_mask[{LANE_BITS}]"),
    ("int64", f"signs[{MAX_STRINGS}]"), ("int64", f"run_mask[{MAX_RUNS}]"),
    ("int", f"run_shift[{MAX_RUNS}]"), ("int", "runs"), ("uint32", f"pattern[{MAX_STRINGS}]"),
    ("uint32", "odd"), ("int", f"first[{PAIRS + 1}]"),
)  # fmt: skip
STRINGS_ARGUMENTS: Fields = (
    ("const double*", "partials"), ("const int64*", "places"), ("const double*", "factors"),
    ("double*", "out"), ("const void*", "state"), ("const int64*", "flips"),
    ("const int64*", "signs"), ("const int64*", "odd"), ("int64", "amplitudes"), ("int", "blocks"),
)  # fmt: skip
PAULI_THREADS = 128
_BLOCKS_OF_PAULI = 3
"""Blocks of a multiprocessor: they leave a thread 168 registers, of which 64 hold amplitudes and 32
those of another lane."""
_HEADERS: Mapping[str, tuple[str, Fields]] = MappingProxyType({
    "SampleArguments": ("sample_kernels", SAMPLE_ARGUMENTS),
    "CountArguments": ("count_kernel", COUNT_ARGUMENTS),
    "MarginalArguments": ("marginal_kernels", MARGINAL_ARGUMENTS),
    "FinishArguments": ("marginal_kernels", FINISH_ARGUMENTS),
    "PauliArguments": ("pauli_kernels", PAULI_ARGUMENTS),
    "StringsArguments": ("pauli_kernels", STRINGS_ARGUMENTS),
})  # fmt: skip
KERNELS: Mapping[str, tuple[str, int, int]] = MappingProxyType({
    "sum_cells": ("SampleArguments", THREADS, 1),
    "sum_blocks": ("SampleArguments", SCAN_THREADS, 1),
    "find_shots": ("SampleArguments", THREADS, 1),
    "count_shots": ("CountArguments", COUNT_THREADS, 1),
    "sum_marginals": ("MarginalArguments", THREADS, 1),
    "finish_marginals": ("FinishArguments", THREADS, 1),
    "sum_strings": ("PauliArguments", PAULI_THREADS, _BLOCKS_OF_PAULI),
    "finish_strings": ("StringsArguments", PAULI_THREADS, 1),
    "small_strings": ("StringsArguments", PAULI_THREADS, 1),
})  # fmt: skip
"""The arguments of each kernel, its threads, and fewest blocks per multiprocessor."""
_BY_ALIGNMENT = ("sum_cells", "find_shots", "sum_marginals", "sum_strings")
_BY_TYPE = (*_BY_ALIGNMENT, "small_strings")


def kernel_forms(name: str) -> list[tuple[str, bool]]:
    """Return the state types and alignments for which a kernel is compiled."""
    types = list(REAL) if name in _BY_TYPE else ["complex64"]
    both = name in _BY_ALIGNMENT
    return [
        (dtype, aligned)
        for dtype in types
        for aligned in (True, False)
        if aligned or (both and dtype == "complex64")
    ]


def kernel_form(name: str, dtype: str, aligned: bool) -> tuple[str, bool]:
    """Return the form of a kernel that takes states of a type that begin on a chunk or do not."""
    form = (dtype if name in _BY_TYPE else "complex64", aligned)
    return form if form in kernel_forms(name) else (form[0], True)


def kernel_name(name: str, dtype: str, aligned: bool) -> str:
    """Return the symbol of a kernel in one of its forms."""
    suffix = f"_{dtype}" if name in _BY_TYPE else ""
    return f"readout_{name}{suffix}{'' if aligned else '_unaligned'}"


def structure_of(name: str) -> Fields:
    """Return the members of a kernel's arguments."""
    return _HEADERS[KERNELS[name][0]][1]


def kernel_source(name: str, dtype: str, aligned: bool) -> str:
    """Return the CUDA C++ of a kernel in one of its forms."""
    structure, threads, blocks = KERNELS[name]
    header, fields = _HEADERS[structure]
    given = [REAL[dtype]] if name in _BY_TYPE else []
    if name in _BY_ALIGNMENT:
        given.append(literal(aligned))
    template = f"<{', '.join(given)}>" if given else ""
    return f'#include "readout/{header}.cuh"\n{size_check(structure, fields)}' + kernel_entry(
        kernel_name(name, dtype, aligned), structure, f"{name}{template}(args);", threads, blocks
    )
