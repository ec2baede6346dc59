"""Numbers of a file that stand for others: unsigned ones, 4 bits, NaN of flagged samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from argand import get_precision
from argand.device import cpu
from input_files import put
from one_input import read, refused

from tests.workflow.one_case import error_of, staged, study_of
from workflow.config.correlate_case import CorrelateCase
from workflow.data import Array
from workflow.files.input_error import InputError
from workflow.inputs.lacking import ZEROS
from workflow.preflight.check import check_study
from workflow.steps.staging import understood
from workflow.workloads.correlate import Correlate

RNG = np.random.default_rng(8)


def case(path: Path, samples: Any, axes: Any = ("antenna", "time"), **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "samples": samples, "axes": list(axes), **more}
    return {"kind": "dft", "axis": "time", "input": source}


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["u1", "<u2", ">u2", "u4", "i2"])
@pytest.mark.parametrize("level", [128, 127.5, 0])
def test_every_way_that_parts_lie(tmp_path: Path, kind: str, level: float) -> None:
    path, parts = tmp_path / "v.h5", RNG.integers(0, 256, (3, 16, 2)).astype(kind)
    pairs = np.empty((3, 16), [("r", kind), ("i", kind)])
    pairs["r"], pairs["i"] = parts[..., 0], parts[..., 1]
    with h5py.File(path, "w") as file:
        file["pairs"], file["parts"] = pairs, parts
        file["re"], file["im"] = parts[..., 0], parts[..., 1]
    values = parts.astype(float) - level
    expected = values[..., 0] + 1j * values[..., 1]
    wide = np.complex128 if kind == "u4" else np.complex64
    for given in (
        case(path, "pairs", zero_level=level),
        case(path, "parts", ("antenna", "time", "complex"), zero_level={"samples": level}),
        case(path, {"real": "re", "imag": "im"}, zero_level=level),
    ):
        found = staged(given).operands["samples"]
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == wide
    found = staged(case(path, {"real": "re"}, zero_level=level)).operands["samples"]
    np.testing.assert_array_equal(found, expected.real)
    given = case(path, {"real": "re"}, zero_level=level) | {"kind": "channelise", "real": True}
    given |= {"channels": 4, "taps": 2}
    given["input"]["samples"] = "re"
    np.testing.assert_array_equal(staged(given).operands["samples"], values[..., 0])


def test_nibbles_in_offset_binary(tmp_path: Path) -> None:
    """CHIME's correlator has them so."""
    data = np.arange(256, dtype=np.uint8).reshape(4, 64)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["x"] = data
    found = staged(case(tmp_path / "v.h5", {"int4x2": "x"}, zero_level=8)).operands["samples"]
    np.testing.assert_array_equal(found, (data >> 4) - 8.0 + 1j * ((data & 15) - 8.0))


def test_netcdf_says_that_signed_numbers_are_unsigned(tmp_path: Path) -> None:
    """_Unsigned says so, with a scale and a fill value in the stored type."""
    stored = np.arange(-12, 12, dtype=np.int8).reshape(2, 12)
    with h5py.File(tmp_path / "v.nc", "w") as file:
        for name, scale in (("x", None), ("packed", np.float32(0.5))):
            file[name] = stored
            file[name].attrs["_Unsigned"] = np.bytes_("true")
            if scale is not None:
                file[name].attrs["scale_factor"] = scale
                file[name].attrs["add_offset"] = np.float32(-64)
        file["t"] = np.arange(116, 128 + 12).astype(np.uint8).view(np.int8)[:12]
        file["late"] = np.arange(120, 132).astype(np.uint8).view(np.int8)
        file["late"].attrs["_Unsigned"] = np.bytes_("true")
    unsigned = stored.view(np.uint8).astype(float)
    path = tmp_path / "v.nc"
    np.testing.assert_array_equal(
        staged(case(path, {"real": "x"}, zero_level=128)).operands["samples"], unsigned - 128
    )
    np.testing.assert_array_equal(
        staged(case(path, {"real": "packed"})).operands["samples"], unsigned / 2 - 64
    )
    times = {"time": {"dataset": "late", "units": "s"}}
    study = study_of(case(path, {"real": "packed"}, coordinates=times))
    check_study(study)
    found = study.workload("w").stage().coordinates["time"].values
    np.testing.assert_array_equal(found, np.arange(120, 132))
    with h5py.File(path, "a") as file:
        file["packed"].attrs["_FillValue"] = np.int8(-1)
    given = case(path, {"real": "packed"}) | {"allow_nonfinite": True}
    assert np.argwhere(np.isnan(staged(given).operands["samples"])).tolist() == [[0, 11]]


def test_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["u"], file["f"] = np.ones((2, 8), "u2"), np.ones((2, 8), "f4")
        file["complex"] = np.ones((2, 8), "c8")
        file["large"] = np.ones((2, 8), "u8")
        file["packed"] = np.ones((2, 8), "u1")
        file["packed"].attrs["scale_factor"] = 2.0
    unsigned = (
        "input.samples: /u holds unsigned numbers, uint16; say which stands for 0 by "
        "input.zero_level.samples: 32768 in offset binary, 0 where none is below 0"
    )
    assert error_of(case(path, {"real": "u"})) == unsigned
    wrong = (
        ", and input.zero_level.samples is of integers without scale_factor and add_offset; leave "
        "it out"
    )
    given = case(path, {"real": "f"}, zero_level=1)
    assert error_of(given) == f"input.samples: /f holds float32{wrong}"
    given = case(path, "complex", zero_level=1)
    assert error_of(given) == f"input.samples: /complex holds complex64{wrong}"
    given = case(path, {"real": "packed"}, zero_level=128)
    assert error_of(given) == (  # without the offset all samples would have one
        "input.samples: /packed has a scale or an offset, by which a stored 128 stands for 256"
        f"{wrong} where the file is right, else write add_offset -256 into a copy of it"
    )
    with h5py.File(path, "a") as file:
        file["offset"] = np.array([[127, 128, 130]] * 2, "u1")
        file["offset"].attrs.update({"scale_factor": 2.0, "add_offset": -256.0})
    np.testing.assert_array_equal(
        staged(case(path, {"real": "offset"})).operands["samples"], [[-2, 0, 4]] * 2
    )
    np.testing.assert_array_equal(
        staged(case(path, {"real": "packed"})).operands["samples"], np.full((2, 8), 2)
    )
    assert "got uint64" in error_of(case(path, {"real": "large"}, zero_level=1))
    for given, said in (
        (case(path, {"real": "u"}, zero_level={"weights": 1}), "zero_level.weights must be one of"),
        (case(path, {"real": "u"}, zero_level=float("nan")), "zero_level"),
        (case(path, {"real": "u"}, zero_level=1e300), "zero_level"),
        (case(path, {"real": "u"}, zero_level="128"), "zero_level"),
        (
            case(path, "visibilities", format="uvh5", zero_level=1),
            "must not be given beside format",
        ),
    ):
        assert said in error_of(given)


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


def flagged_case(path: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "voltages": "v", "axes": ["antenna", "time"], **more}
    return {"kind": "correlate", "input": source}


@pytest.mark.parametrize("kind", ["c8", "c16", "parts", "packed"])
def test_nan_is_left_out_of_sums(tmp_path: Path, kind: str) -> None:
    """A value is flagged where either part is NaN, and both parts become 0."""
    path, rng = tmp_path / "v.h5", np.random.default_rng(3)
    values = rng.integers(-9, 9, (3, 8, 2)).astype(np.float32)
    flags = np.zeros((3, 8), bool)
    flags[1, 4] = flags[2, 5] = True
    where = ((1, 4, 0), (2, 5, 1))
    more: dict[str, Any] = {}
    for place in where:
        values[place] = -9 if kind == "packed" else np.nan
    with h5py.File(path, "w") as file:
        if kind in ("parts", "packed"):
            stored = values.astype(">i2") if kind == "packed" else values
            file["v"] = stored
            if kind == "packed":
                file["v"].attrs["missing_value"] = stored.dtype.type(-9)
            more = {"axes": ["antenna", "time", "complex"]}
        else:
            file["v"] = (values[..., 0] + 1j * values[..., 1]).astype(kind)
    if kind == "packed":
        flags = (values == -9).any(axis=-1)
    one = study_of(flagged_case(path, flagged="zero", **more)).workload("w").stage()
    found = one.held().operands["voltages"].reshape(3, 8)
    expected = np.where(flags, 0, values[..., 0] + 1j * values[..., 1])
    np.testing.assert_array_equal(found, expected)
    said = f"{flags.sum()} of 24 values, which are NaN in the file"
    assert one.attributes[ZEROS] == {"voltages": said}
    assert understood(one).endswith(f"{said}, are 0 in voltages")


def test_inf_stays_an_error(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.array([[1, np.inf, np.nan]], np.complex64)
    with pytest.raises(InputError, match=r"0 NaN and 1 Inf among 3 values.*lets them through$"):
        study_of(flagged_case(path, flagged="zero")).workload("w").stage()
    said = "input.flagged must be refuse or zero beside format: hdf5, got keep: allow_nonfinite"
    assert error_of(flagged_case(path, flagged="keep")).startswith(said)


def test_a_file_without_nan(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.ones((2, 4), np.complex64)
    one = study_of(flagged_case(path, flagged="zero")).workload("w").stage()
    assert ZEROS not in one.attributes
