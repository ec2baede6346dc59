"""HDF5 files as users have them, and an operand that is read from one, or refused."""

import h5py
import numpy as np
import pytest

from workflow.config.file_input import DatasetRef, FileInput
from workflow.files.input_error import InputError
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_operand, read_operand

AXES = ("chan", "ant", "time")


class OneInput(FileInput):
    x: DatasetRef
    y: DatasetRef | None = None


def parts(shape, dtype, seed=1):
    rng = np.random.default_rng(seed)
    re, im = rng.integers(-100, 100, (2, *shape))
    return re.astype(dtype), im.astype(dtype)


def compound(re, im, dtype):
    data = np.empty(re.shape, [("r", dtype), ("i", dtype)])
    data["r"], data["i"] = re, im
    return data


def put(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file[name] = data
    return path


def read(path, ref="/x", select=None, rank=3, real=False):
    """Read, and check that the headers promised what came."""
    source = OneInput(file=path, x=ref, select={} if select is None else {"x": select})
    header = describe_operand(source, Operand("x", AXES[-rank:], real=real))
    data = read_operand(source, Operand("x", AXES[-rank:], real=real))
    assert (data.shape, data.dtype.name) == (header.shape, header.dtype)
    assert data.flags.c_contiguous
    assert data.dtype.isnative
    return data


def refused(path, ref="/x", select=None, rank=3, real=False):
    source = OneInput(file=path, x=ref, select={} if select is None else {"x": select})
    with pytest.raises(InputError) as described:
        describe_operand(source, Operand("x", AXES[-rank:], real=real))
    with pytest.raises(InputError) as raised:
        read_operand(source, Operand("x", AXES[-rank:], real=real))
    assert str(described.value) == str(raised.value)
    return str(raised.value)
