"""Product files: what goes in comes out, others' programs open them, damage is an error."""

import shutil
import subprocess
from dataclasses import replace

import h5py
import numpy as np
import pytest

from workflow.data import Coordinate, Product
from workflow.records import Record
from workflow.storage.certificates import CERTIFICATE_KEYS, read_certificate
from workflow.storage.datasets import DataError
from workflow.storage.products import read_product, write_product

RECORD = Record(
    workload="beams", kind="beamforming", implementation="argand", precision="tf32",
    algorithm="cgemm", device="a processor", rel_frobenius=2.5e-4, componentwise_re=1e-4,
    componentwise_im=2e-4, bound=1e-3, tolerance=1e-2, error_limit=1e-3, verdict="verified",
    verified=True, reference="full",
    kernel_digest="abc", versions="numpy 2", timestamp="2026-11-21T00:00:00Z",
)  # fmt: skip
CERTIFICATE = {key: value for key, value in RECORD.row().items() if value not in (None, "")} | {
    "seed": 7,
    "source": {"file": "/data/run42.h5", "checksum": "sha256:00ff"},
}
LAYOUTS = ("complex64", "complex128", "float32", "float64")


def beams(dtype="complex64", time=5):
    rng = np.random.default_rng(1)
    shape = (3, 2, 4, time)
    data = rng.normal(size=shape)
    if dtype.startswith("complex"):
        data = data + 1j * rng.normal(size=shape)
    return Product(
        name="beams",
        data=data.astype(dtype),
        axes=("chan", "pol", "beam", "time"),
        coordinates={
            "chan": Coordinate(np.array([1.0e8, 1.1e8, 1.2e8]), "Hz", "channel frequency"),
            "pol": Coordinate(np.array(["x", "ŷ"]), "", "polarization"),
            "time": Coordinate(np.arange(time) * 1e-6, "s", "time"),
        },
        title="Beams of a small array",
        units="V",
    )


@pytest.fixture(params=LAYOUTS)
def written(request, tmp_path):
    product = beams(request.param)
    path = tmp_path / "beams.h5"
    write_product(path, product, CERTIFICATE, workload="beams", kind="beamforming")
    return path, product


def assert_same(found, product):
    assert found.data.dtype == product.data.dtype
    np.testing.assert_array_equal(found.data, product.data)
    for field in ("name", "axes", "title", "units"):
        assert getattr(found, field) == getattr(product, field)
    assert set(found.coordinates) == set(product.coordinates)
    for axis, coordinate in product.coordinates.items():
        np.testing.assert_array_equal(found.coordinates[axis].values, coordinate.values)
        assert found.coordinates[axis].units == coordinate.units
        assert found.coordinates[axis].long_name == coordinate.long_name


def test_round_trip(written):
    path, product = written
    assert_same(read_product(path), product)
    assert read_certificate(path) == CERTIFICATE


def test_every_array_is_checksummed(written):
    path, _ = written
    with h5py.File(path) as file:
        for name, dataset in file["entry/data"].items():
            if h5py.check_string_dtype(dataset.dtype) is None:
                assert dataset.fletcher32, name


@pytest.mark.parametrize("where", [{}, {"engine": "h5netcdf", "group": "entry/data"}], ids=str)
def test_xarray_sees_named_dimensions_and_coordinates(written, where):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    path, product = written
    with xarray.open_dataset(path, **where) as dataset:
        found = dataset["beams"]
        assert found.dims == product.axes
        np.testing.assert_array_equal(found.values, product.data)
        assert found.attrs["units"] == "V"
        np.testing.assert_array_equal(found["chan"], [1.0e8, 1.1e8, 1.2e8])
        assert found["chan"].attrs["units"] == "Hz"
        assert found["pol"].values.tolist() == ["x", "ŷ"]
        np.testing.assert_array_equal(found["beam"], np.arange(4))
        assert list(dataset.data_vars) == ["beams"]


def test_silx_finds_the_default_plot(written):
    silx = pytest.importorskip("silx.io")
    nxdata = pytest.importorskip("silx.io.nxdata")
    path, product = written
    with silx.open(str(path)) as file:
        default = nxdata.get_default(file)
        assert default.is_valid
        assert default.issues == []
        assert default.axes_names == ["channel frequency", "polarization", "beam number", "time"]
        np.testing.assert_array_equal(default.signal[...], product.data)
        np.testing.assert_array_equal(default.axes[0][...], [1.0e8, 1.1e8, 1.2e8])


def test_nexusformat_finds_the_default_plot(written):
    nexus = pytest.importorskip("nexusformat.nexus")
    path, product = written
    root = nexus.nxload(path)
    assert root["entry"].nxtitle == product.title
    data = root.plottable_data
    np.testing.assert_array_equal(data.nxsignal.nxvalue, product.data)
    assert [axis.nxname for axis in data.nxaxes] == list(product.axes)
    assert data.nxaxes[0].attrs["units"] == "Hz"
    assert root["entry/certificate/precision"].nxvalue == "tf32"


def test_h5dump_reads_all_of_it(written):
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump is not installed (Debian: hdf5-tools)")
    path, _ = written
    dump = subprocess.run(["h5dump", path], capture_output=True, text=True, check=True)
    assert dump.stderr == ""
    for part in ('GROUP "certificate"', "NXdata", "DIMENSION_LIST", "sha256:00ff"):
        assert part in dump.stdout


def test_nexus_attributes(written):
    path, product = written
    with h5py.File(path) as file:
        assert file.attrs["default"] == "entry"
        assert file["entry"].attrs["default"] == "data"
        assert file["entry"].attrs["NX_class"] == "NXentry"
        data = file["entry/data"]
        assert data.attrs["NX_class"] == "NXdata"
        assert [int(data.attrs[f"{axis}_indices"]) for axis in product.axes] == [0, 1, 2, 3]
        assert "definition" not in file["entry"]
        assert file["entry/certificate/rel_frobenius"][()] == 2.5e-4
        assert file["entry/certificate/source/checksum"].asstr()[()] == "sha256:00ff"
        assert file["entry/certificate"].attrs["verified"]


def test_an_infinite_or_missing_value_stays(tmp_path):
    product = beams("float32")
    product.data.flat[:3] = np.nan, np.inf, -np.inf
    write_product(tmp_path / "p.h5", product, CERTIFICATE, workload="beams", kind="beamforming")
    assert_same(read_product(tmp_path / "p.h5"), product)


def test_missing_and_foreign_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.h5"):
        read_product(tmp_path / "absent.h5")
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(DataError, match=r"foreign\.h5: .*not a file of argand"):
        read_product(tmp_path / "foreign.h5")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": ("chan", "pol", "beam")}, "must name each of the 4 axes"),
        ({"axes": ("chan", "pol", "beam", "beam")}, "must name each of the 4 axes"),
        ({"coordinates": {"chan": Coordinate(np.arange(2))}}, r"chan must have shape \(3,\)"),
        ({"coordinates": {"ant": Coordinate(np.arange(2))}}, r"must be of .*got \['ant'\]"),
        ({"name": "beam"}, "must differ from its axes"),
    ],
)
def test_axes_that_do_not_fit_are_refused(tmp_path, change, message):
    product = replace(beams(), **change)
    with pytest.raises(ValueError, match=message):
        write_product(tmp_path / "p.h5", product, CERTIFICATE, workload="b", kind="beamforming")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", CERTIFICATE_KEYS)
def test_an_incomplete_certificate_is_refused(tmp_path, key):
    short = {name: value for name, value in CERTIFICATE.items() if name != key}
    with pytest.raises(ValueError, match=key):
        write_product(tmp_path / "p.h5", beams(), short, workload="b", kind="beamforming")


def test_what_did_not_verify_is_not_delivered(tmp_path):
    failed = CERTIFICATE | {"verdict": "suspect", "verified": False}
    with pytest.raises(ValueError, match=r"verdict must be one of .*, got 'suspect'"):
        write_product(tmp_path / "p.h5", beams(), failed, workload="b", kind="beamforming")


@pytest.mark.parametrize(("most", "channels"), [(1, 1), (2 * 2 * 4 * 5 * 8, 2), (10**9, 3)])
def test_the_beginning_of_a_product(tmp_path, most, channels):
    product = beams()
    write_product(tmp_path / "p.h5", product, CERTIFICATE, workload="beams", kind="beamforming")
    found = read_product(tmp_path / "p.h5", most=most)
    np.testing.assert_array_equal(found.data, product.data[:channels])
    assert found.coordinates["pol"].values.tolist() == ["x", "ŷ"]
    more = f" (first {channels} of 3, chan)" if channels < 3 else ""
    assert found.title == product.title + more
