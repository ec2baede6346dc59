"""Two 4-bit integers in a byte as a complex number: every byte, and what is no such dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import get_precision
from argand.device import cpu
from input_files import put
from one_input import read, refused

from workflow.config.correlate_case import CorrelateCase
from workflow.data import Array
from workflow.workloads.correlate import Correlate

PACKED = {"int4x2": "/x"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


def of_bytes(data: Array) -> Array:
    """Return the numbers that hexadecimal digits are: 8 to f are -8 to -1."""
    signed = [digit - 16 if digit > 7 else digit for digit in range(16)]
    values = [
        complex(signed[int(f"{byte:02x}"[0], 16)], signed[int(f"{byte:02x}"[1], 16)])
        for byte in data.reshape(-1).tolist()
    ]
    return np.array(values).reshape(data.shape)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_every_byte(path: Path, dtype: str) -> None:
    data = np.arange(256, dtype=np.uint8).reshape(4, 8, 8)
    put(path, x=data.view(dtype))
    found = read(path, PACKED)
    assert found.dtype == np.complex64
    np.testing.assert_array_equal(found, of_bytes(data))
    assert found.real.min() == found.imag.min() == -8
    some = read(path, PACKED, select={"x": ["1:3", "::2", [3, 1]]})
    np.testing.assert_array_equal(some, of_bytes(data)[1:3, ::2, [3, 1]])


@pytest.mark.parametrize(
    ("stored", "got"),
    [
        (np.zeros(3, "int16"), "got int16"),
        (np.zeros(3, "float32"), "got float32"),
        (np.zeros(3, "complex64"), "got complex64"),
        (np.zeros(3, bool), "got an enumeration in int8"),
        (np.zeros(3, [("r", "i1"), ("i", "i1")]), "got a compound {r: int8, i: int8}"),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_what_is_no_byte(path: Path, stored: Array, got: str) -> None:
    put(path, x=stored)
    said = refused(path, PACKED)
    assert said.startswith("input.x: /x must be bytes, one of ['int8', 'uint8'], got ")
    assert got in said or "bool" in said


def test_what_they_are_not_beside(path: Path) -> None:
    put(path, x=np.zeros((3, 2), np.uint8))
    assert "names its parts" in refused(path, PACKED, axes=["a", "complex"])
    assert "no dataset" in refused(path, {"int4x2": "/none"})
    with pytest.raises(ValueError, match="imag"):
        read(path, {**PACKED, "imag": "/x"})


@pytest.mark.parametrize("bits", [4, 8])
def test_their_visibilities_are_exact(path: Path, rng: np.random.Generator, bits: int) -> None:
    """Sums of products of integers, the lowest among them, lose nothing in fp32."""
    low = -(1 << (bits - 1))
    parts = rng.integers(low, -low, (2, 1, 3, 5, 16))
    parts[:, 0, 0] = low
    if bits == 4:
        put(path, x=((parts[0] & 15) << 4 | parts[1] & 15).astype(np.uint8))
        where: Any = PACKED
    else:
        both = np.zeros(parts.shape[1:], [("r", "i1"), ("i", "i1")])
        both["r"], both["i"] = parts
        put(path, x=both)
        where = "/x"
    source = {"file": path, "voltages": where}
    case = CorrelateCase.model_validate({"kind": "correlate", "integrate": 8, "input": source})
    one = Correlate("v", case, 1)
    staged = one.stage()
    x = parts[0] + 1j * parts[1]
    np.testing.assert_array_equal(staged.operands["voltages"], x)
    ours = one.argand(staged, get_precision("fp32"), cpu())
    found = ours.compute(ours.prepare(staged.operands))
    inputs = x.reshape(1, 15, 2, 8).swapaxes(1, 2)
    np.testing.assert_array_equal(found, inputs @ inputs.conj().swapaxes(-1, -2))
    # Also where nothing says what stands along the axes.
    accuracy = one.assess(staged, one.reference(staged), found, get_precision("fp32"), "cpu")
    assert accuracy.verified, accuracy.reason
