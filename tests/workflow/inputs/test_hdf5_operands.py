"""Reading the user's operands: every stored form, every selection, every refusal."""

import gzip
import hashlib
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from input_files import OneInput, compound, parts, put, read, refused

from workflow.files.input_error import InputError
from workflow.files.stored_types import COMPONENT_TYPES
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_operand, read_operand, source_checksum
from workflow.inputs.operand_values import count_nonfinite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def wide(dtype):
    return np.dtype(dtype).name in ("float64", "int32")


def fits_header(**cards: int) -> bytes:
    """The beginning of a FITS file."""
    shown = {"SIMPLE": "T", "BITPIX": -32, **cards}
    return "".join(f"{k:<8}= {v!s:>20} / of {k}".ljust(80) for k, v in shown.items()).encode()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", COMPONENT_TYPES)
class TestStoredForms:
    def test_a_compound(self, path, dtype, order):
        stored = np.dtype(dtype).newbyteorder(order)
        re, im = parts((2, 3, 4), stored)
        put(path, x=compound(re, im, stored))
        data = read(path)
        np.testing.assert_array_equal(data, re + 1j * im.astype(float))
        assert data.dtype == (np.complex128 if wide(dtype) else np.complex64)

    def test_separate_parts(self, path, dtype, order):
        stored = np.dtype(dtype).newbyteorder(order)
        re, im = parts((2, 3, 4), stored)
        put(path, re=re, im=im)
        data = read(path, {"real": "/re", "imag": "im"})
        np.testing.assert_array_equal(data, re + 1j * im.astype(float))
        assert data.dtype == (np.complex128 if wide(dtype) else np.complex64)

    def test_real(self, path, dtype, order):
        re, _ = parts((2, 3, 4), np.dtype(dtype).newbyteorder(order))
        put(path, x=re)
        data = read(path, real=True)
        np.testing.assert_array_equal(data, re)
        assert data.dtype == (np.float64 if wide(dtype) else np.float32)


def test_mixed_parts_take_the_wider_type(path):
    put(path, re=np.float32([1]), im=np.int32([2**31 - 1]))
    data = read(path, {"real": "/re", "imag": "/im"})
    assert data.ravel() == [1 + (2**31 - 1) * 1j]
    assert data.dtype == np.complex128


def test_hdf5_native_complex(path):
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((3,))
        for name, kind in (("a", "COMPLEX_IEEE_F32LE"), ("b", "COMPLEX_IEEE_F64BE")):
            dataset = h5py.h5d.create(file.id, name.encode(), getattr(h5py.h5t, kind), space)
            data = np.array([1j, 2, 3 - 1j], "c8" if name == "a" else ">c16")
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, getattr(h5py.h5t, kind))
    for name, dtype in (("a", np.complex64), ("b", np.complex128)):
        data = read(path, name)
        np.testing.assert_array_equal(data.ravel(), [1j, 2, 3 - 1j])
        assert data.dtype == dtype


def test_compressed_with_a_plugin_filter(path):
    import hdf5plugin

    x = np.arange(4096).astype(np.complex64)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x, chunks=(512,), **hdf5plugin.Bitshuffle())
    np.testing.assert_array_equal(read(path).ravel(), x)


def test_missing_leading_axes_count_as_one(path):
    put(path, x=np.ones((3, 4), np.complex64), line=np.ones(4, np.complex64))
    assert read(path).shape == (1, 3, 4)
    assert read(path, "/line").shape == (1, 1, 4)


class TestRefusals:
    def test_no_file(self, tmp_path):
        assert "input.file: there is no file" in refused(tmp_path / "none.h5")
        assert f"input.file: {tmp_path} is a folder, not a file" in refused(tmp_path)
        for name, said in (("zarr.json", "it is Zarr; "), ("table.dat", "it is CASA's tables; ")):
            (tmp_path / name).mkdir()
            (tmp_path / name / name).touch()
            found = refused(tmp_path / name)
            assert found.startswith(
                f"input.file: {tmp_path / name} is a folder, not a file: {said}"
            )
        os.mkfifo(tmp_path / "pipe.h5")
        assert "pipe.h5 is a pipe or a device, not a file" in refused(tmp_path / "pipe.h5")
        (tmp_path / "link.h5").symlink_to("gone.h5")
        found = refused(tmp_path / "link.h5")
        assert found.endswith("link.h5 is a link to gone.h5, where there is no file")
        assert refused(Path("~/x.h5")).endswith("; ~ and $NAME stand for themselves in a study")

    def test_not_hdf5(self, path):
        path.write_text("x,y\n1,2\n")
        assert f"{path} is not a readable HDF5 file" in refused(path)

    @pytest.mark.parametrize(
        ("name", "given"),
        [("x.vdif", "vdif"), ("x.DADA", "dada"), ("x.0000.raw", "guppi"), ("x.s12p", "touchstone")],
    )
    def test_formats_that_names_tell(self, tmp_path, name, given):
        (path := tmp_path / name).write_text("! text\n")
        assert f"(by its name it is {given}: `format: {given}` reads " in refused(path)

    @pytest.mark.parametrize(("content", "said"), [
        (b"", "it is empty"), (b"x,y\n1,2\n", "it is text; where it is a table of numbers, "),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "a WAV file; h5py.File('x.h5', 'w')['x'] = scipy.io"),
        (b"\x93NUMPY\x01\x00v\x00", "an array of NumPy; h5py.File('x.h5', 'w')['x'] = numpy.load"),
        (b"PK\x03\x04\x00", "where it is NumPy's npz, "),
        (gzip.compress(b"", mtime=0), "it is compressed; gzip -dk writes the file that it holds"),
        (b"MATLAB 5.0 MAT", "'-v7.3') writes HDF5"),
        (fits_header(NAXIS=2, NAXIS1=40), "it is a FITS file; h5py.File('x.h5', 'w')['x'] = astro"),
        (fits_header(NAXIS=6, NAXIS1=0), "it is UVFITS; pyuvdata.UVData.from_file(name).write_uv"),
        (b"\x00\x01\xff" * 300, "numbers alone, h5py.File('x.h5', 'w')['x'] = numpy.fromfile"),
    ])  # fmt: skip
    def test_other_files_are_named_and_how_they_become_hdf5(self, path, content, said):
        path.write_bytes(content)
        assert f"{path} is not a readable HDF5 file (" in (message := refused(path))
        assert said in message

    def test_truncated(self, path):
        put(path, x=np.zeros(100000, np.complex64))
        whole = path.stat().st_size
        path.write_bytes(path.read_bytes()[:5000])
        assert refused(path).endswith(
            f"{path} is not a readable HDF5 file (it is cut short: 5000 of its {whole} bytes are "
            "there; copy or write it again)"
        )

    def test_no_such_dataset_names_those_there_are(self, path):
        put(path, **{"beams/weights": np.zeros(1), "voltages": np.zeros(1)})
        message = refused(path, "/beams/weigths")
        assert "has no dataset /beams/weigths; did you mean /beams/weights?" in message
        assert "(it has: /beams/weights, /voltages)" in message
        assert "(it has: no dataset)" in refused(put(path), "/x")

    def test_a_group(self, path):
        put(path, **{"g/x": np.zeros(1)})
        assert "/g is a group, not a dataset" in refused(path, "/g")

    def test_too_many_axes(self, path):
        put(path, x=np.zeros((2, 3, 4), np.complex64))
        message = refused(path, rank=2)
        assert "input.x must have at least 1 and at most 2 axes (ant, time)" in message
        assert "/x has 3 of shape (2, 3, 4)" in message
        assert read(path, select=[0, ":", ":"], rank=2).shape == (3, 4)

    def test_no_axis_and_no_element(self, path):
        put(path, x=np.complex64(1), empty=np.zeros((0, 3), np.complex64))
        assert "at least 1" in refused(path)
        assert "at least 1" in refused(put(path, x=np.ones(3, "c8")), select=[1])
        put(path, x=np.zeros((0, 3), np.complex64))
        assert "input.x must have elements along each of its axes" in refused(path)

    @pytest.mark.parametrize("dtype", ["c8", "i8", "?", [("r", "f4"), ("i", "f4")]])
    def test_types_of_a_real_operand(self, path, dtype):
        assert "must be real, one of ['float16'" in refused(put(path, x=np.zeros(3, dtype)), real=1)

    def test_a_real_operand_in_two_parts(self, path):
        put(path, re=np.zeros(1), im=np.zeros(1))
        assert "must be one dataset" in refused(path, {"real": "re", "imag": "im"}, real=True)

    def test_parts_of_different_shape(self, path):
        put(path, re=np.zeros((1, 2)), im=np.zeros((2, 1)))
        message = refused(path, {"real": "re", "imag": "im"})
        assert "must have the same shape, got (1, 2) and (2, 1)" in message

    def test_a_complex_part(self, path):
        put(path, re=np.zeros(2, "c8"), im=np.zeros(2))
        assert "/re must be real" in refused(path, {"real": "re", "imag": "im"})

    def test_a_flipped_byte(self, path):
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", data=np.ones(64, "c8"), chunks=(64,), fletcher32=1)
            offset = dataset.id.get_chunk_info(0).byte_offset
        content = bytearray(path.read_bytes())
        content[offset + 5] ^= 1
        path.write_bytes(content)
        source = OneInput(file=path, x="/x")
        with pytest.raises(InputError, match=r"input\.x: /x of .* cannot be read"):
            read_operand(source, Operand("x", ("time",)))


def test_reading_headers_does_not_read_data(path):
    """A terabyte that was never written has headers; reading it would not fit in memory."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 17, 1 << 20), "c8", chunks=(1, 1 << 20))
    source = OneInput(file=path, x="/x")
    header = describe_operand(source, Operand("x", ("ant", "time")))
    assert header.shape == (1 << 17, 1 << 20)


def test_nonfinite_elements_are_counted_once():
    x = np.zeros((3, 5), np.complex64)
    x[0, 0], x[2, 4] = np.nan, complex(np.inf, np.nan)
    x[0, 1], x[1, 1] = complex(0, np.inf), -np.inf
    assert count_nonfinite(x) == (2, 2)
    assert count_nonfinite(x.T) == (2, 2)
    assert count_nonfinite(np.zeros((0, 2), np.float32)) == (0, 0)
    many = np.full((1 << 20) + 3, np.inf, np.float32)
    assert count_nonfinite(many) == (0, many.size)


def test_source_checksum(path, tmp_path):
    path.write_bytes(b"abc" * 1000000)
    assert source_checksum(path) == hashlib.sha256(b"abc" * 1000000).hexdigest()
    with pytest.raises(InputError, match=r"input\.file: .* cannot be read"):
        source_checksum(tmp_path / "none")
