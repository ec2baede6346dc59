"""Kernel arguments: the structure that a launch fills is the one that the kernel reads."""

from __future__ import annotations

import ctypes

import pytest
from argand.gates.source import ARGUMENTS as GATE_ARGUMENTS
from argand.gemm.absmax_source import ABSMAX_ARGUMENTS
from argand.gemm.pack.source import PACK_SOURCE
from argand.gemm.sm80.source import GEMM_ARGUMENTS
from argand.gemm.sm90.source import WGMMA_ARGUMENTS
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.compile.nvrtc import CompileError
from argand.runtime.launch.arguments import (
    Arguments,
    Fields,
    arguments_dtype,
    size_check,
    unset_members,
)

STRUCTURES: dict[str, tuple[str, Fields]] = {
    "GemmArguments": ("gemm/sm80_kernel.cuh", GEMM_ARGUMENTS),
    "AbsmaxArguments": ("gemm/absmax_kernel.cuh", ABSMAX_ARGUMENTS),
    "PackArguments": ("gemm/pack_kernel.cuh", PACK_SOURCE),
    "WgmmaArguments": ("gemm/sm90_plan.cuh", WGMMA_ARGUMENTS),
    "GateArguments": ("gates/tile.cuh", GATE_ARGUMENTS),
}
C_TYPES: dict[str, type[ctypes._SimpleCData]] = {
    "int": ctypes.c_int, "uint32": ctypes.c_uint32, "int64": ctypes.c_longlong,
    "float": ctypes.c_float,
}  # fmt: skip
MIXED: Fields = (
    ("int", "first"), ("const float2*", "x"), ("float", "alpha"), ("int", "count"),
    ("float", "beta"), ("int64", "stride"), ("int", "last"),
)  # fmt: skip


def as_c(fields: Fields) -> type[ctypes.Structure]:
    members = []
    for kind, member in fields:
        name, _, length = member.partition("[")
        one = ctypes.c_void_p if kind.endswith("*") else C_TYPES[kind]
        members.append((name, one * int(length[:-1]) if length else one))
    return type("AsC", (ctypes.Structure,), {"_fields_": members})


@pytest.mark.parametrize("fields", [MIXED, *(fields for _, fields in STRUCTURES.values())])
def test_members_lie_where_c_puts_them(fields: Fields) -> None:
    dtype, structure = arguments_dtype(fields), as_c(fields)
    assert dtype.itemsize == ctypes.sizeof(structure)
    assert dtype.names == tuple(name.partition("[")[0] for _, name in fields)
    for name in dtype.names:
        kind, offset = dtype.fields[name][:2]
        member = getattr(structure, name)
        assert (offset, kind.itemsize) == (member.offset, member.size), name


def test_padding_stands_before_wider_members_and_at_the_end() -> None:
    dtype = arguments_dtype(MIXED)
    assert [dtype.fields[name][1] for name in dtype.names] == [0, 8, 16, 20, 24, 32, 40]
    assert dtype.itemsize == 48


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_kernels_structure_has_these_members_in_these_places(structure: str) -> None:
    """Two members of one size, exchanged, would pass the check of the size.

    NVRTC has no offsetof; __INTADDR__ is what its front end makes of one.
    """

    def path(structure: str, name: str) -> str:
        """The operands of the absmax kernel are structures of their own."""
        nested = structure == "AbsmaxArguments" and name != "a_blocks"
        return name.replace("_", ".", 1) if nested else name

    header, fields = STRUCTURES[structure]
    dtype = arguments_dtype(fields)
    checks = "".join(
        f"static_assert(__INTADDR__(&(({structure}*)0)->{path(structure, name)}) == {offset});\n"
        for name, (_, offset) in dtype.fields.items()
    )
    source = f'#include "{header}"\n{size_check(structure, fields)}{checks}'
    compile_cubin(source + 'extern "C" __global__ void f() {}', "sm_90a")


def test_a_structure_of_another_size_does_not_compile() -> None:
    source = "struct Other { int first; double x; };\n"
    good, bad = (("int", "first"), ("int64", "x")), (("int", "first"), ("int", "x"))
    kernel = 'extern "C" __global__ void f(Other x) {}'
    compile_cubin(source + size_check("Other", good) + kernel, "sm_90a")
    with pytest.raises(CompileError, match="as the launch fills it"):
        compile_cubin(source + size_check("Other", bad) + kernel, "sm_90a")


def values() -> dict[str, object]:
    return {
        "first": -1, "x": 0, "alpha": 0.5, "count": True, "beta": -2.0, "stride": 2**40, "last": 7,
    }  # fmt: skip


def test_values_reach_the_bytes() -> None:
    dtype = arguments_dtype(MIXED)
    address = 0x7F00_1234_5678_9A00
    arguments = Arguments(dtype, values())
    arguments.set({"x": address})
    raw = arguments.bytes.tobytes()
    assert len(raw) == dtype.itemsize
    found = as_c(MIXED).from_buffer_copy(raw)
    assert {name: getattr(found, name) for _, name in MIXED} == values() | {"x": address}


def test_a_word_is_where_its_member_is() -> None:
    fields: Fields = (("int", "size"), ("void*", "x"), ("int64", "y"), ("float", "z"))
    held = Arguments(arguments_dtype(fields), {"size": 3, "x": 0, "y": 0, "z": 0.5})
    for name, value in (("x", 2**40), ("y", 2**63 + 7)):
        words, index = held.word(name)
        words[index] = value
    found = as_c(fields).from_buffer_copy(held.bytes.tobytes())
    assert (found.size, found.x, found.y, found.z) == (3, 2**40, 7 - 2**63, 0.5)
    with pytest.raises(ValueError, match="size does not have 64 bits"):
        held.word("size")
    with pytest.raises(KeyError):
        held.word("w")


def test_a_member_without_a_value_is_named() -> None:
    given = values()
    del given["stride"]
    with pytest.raises(KeyError, match="stride"):
        Arguments(arguments_dtype(MIXED), given)


def test_a_member_that_no_launch_sets_is_named() -> None:
    """A launch must not run with 0 for a number that its caller forgot."""
    given = {name: value for name, value in values().items() if name != "stride"}
    held = Arguments(arguments_dtype(MIXED), given, later=["stride"])
    with pytest.raises(KeyError, match="members without a value: \\['stride'\\]"):
        held.set({"x": 4096})
    held.set({"x": 4096, "stride": 3})
    held.set({"x": 8192})
    found = as_c(MIXED).from_buffer_copy(held.bytes.tobytes())
    assert (found.x, found.stride) == (8192, 3)


def test_pointers_are_null_and_numbers_are_not() -> None:
    fields = (
        ("char*", "at"), ("const int*", "to"), ("int64", "size"), ("int64", "count"),
        ("int64", "offset[2]"), ("int", "n"),
    )  # fmt: skip
    assert unset_members(fields, {"at": 7, "count": 3, "offset": (1, 2)}) == ({"to": 0}, ["size"])


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OverflowError):
        Arguments(arguments_dtype(MIXED), values() | {"last": 2**31})


def test_members_may_be_arrays() -> None:
    fields = (("char*", "at"), ("uint32", "masks[3]"), ("int64", "size"))
    dtype = arguments_dtype(fields)
    offsets = {} if dtype.fields is None else {n: dtype.fields[n][1] for n in dtype.fields}
    assert (offsets, dtype.itemsize) == ({"at": 0, "masks": 8, "size": 24}, 32)
    held = Arguments(dtype, {"at": 0, "masks": (1, 2, 3), "size": 5})
    held.set({"at": 7})
    (row,) = held.bytes.view(dtype)
    assert (row["at"], list(row["masks"]), row["size"]) == (7, [1, 2, 3], 5)
