"""Thousands of HDF5 files: odd headers, and damaged bytes of right ones.

They are read in processes of their own, with a limit on memory and on time: HDF5 is C, and may end
a process or search for ever. Only arrays and InputErrors come out.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.covers import EXHAUSTIVE, examples
from workflow.config.file_input import DatasetRef, FileInput
from workflow.files import text_attributes
from workflow.files.input_error import InputError
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_coordinates, describe_operand, read_operand

AXES = ("a", "b", "c")
MEMORY = 3 << 30
"""Bytes of address space of a process that reads: its libraries take one of the three."""
SECONDS = 120
FLIPS, HEADERS = examples(1200), examples(800)
_SCALES = 0.125 if EXHAUSTIVE else 0.05
"""Part of the damaged files of which what they have along axes is read, in 50 ms."""
LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "compressed": {"chunks": (2, 3, 4), "compression": "gzip", "shuffle": True},
    "checksummed": {"chunks": (2, 3, 4), "fletcher32": True, "maxshape": (None, 3, 6)},
}


class OneInput(FileInput):
    x: DatasetRef


def described(source: FileInput, operand: Operand) -> None:
    """Describe what the file has along the operand's axes, and beside them."""
    describe_coordinates(source, [operand])


def attempt(path: Path, name: Any, *, scales: bool = False, **keys: Any) -> str:
    """The fate of a file: "read", or "refused" by InputErrors with a message.

    Coordinates along the axes are read too with ``scales``, each by a fork.
    """
    source = OneInput(file=path, x=name, **keys)
    message = []
    for read in (describe_operand, *((described,) if scales else ()), read_operand):
        try:
            read(source, Operand("x", AXES))
        except InputError as error:
            message.append(str(error))
    assert all(text.startswith("input.") and len(text) > 20 for text in message), message
    return "refused" if message else "read"


def flipped(folder: Path, layout: str) -> list[str]:
    """Outcomes of a small file with one to three damaged bytes, mostly in its headers."""
    path = folder / "x.h5"
    libver = "latest" if layout == "checksummed" else "earliest"
    with h5py.File(path, "w", libver=libver) as file:
        group = file.create_group("g")
        data = np.arange(72).reshape(4, 3, 6).astype("c8")
        x = group.create_dataset("x", data=data, **LAYOUTS[layout])
        group["t"], group["name"] = np.arange(3.0) + 1, np.array([b"one", b"two", b"three"])
        x.attrs["coordinates"] = "name gone t"
        for of in (x.dims[1], group["name"].dims[0]):
            of.attach_scale(group["t"])
        file["soft"] = h5py.SoftLink("/g/x")
    good = path.read_bytes()
    # Most of a file of this size is room that HDF5 has not used: a byte in it damages nothing.
    used = [place for place, byte in enumerate(good) if byte] + list(range(0, len(good), 16))
    choose = random.Random(layout)
    outcomes = []
    for _ in range(FLIPS):
        damaged = bytearray(good)
        for _ in range(choose.randint(1, 3)):
            place = choose.choice(used)
            damaged[place] = choose.choice([damaged[place] ^ 1 << choose.randrange(8), 0, 0xFF])
        cut = choose.randrange(len(good)) if choose.random() < 0.05 else len(good)
        path.write_bytes(damaged[:cut])
        name = choose.choice(["/g/x", "/soft", "/missing"])
        scales = choose.random() < _SCALES
        outcomes.append(attempt(path, name, scales=scales, axes=list(AXES)))
    return outcomes


TYPES: list[Any] = [
    "f2", "<f4", ">f8", "i1", "i2", "i4", "u1", "u8", "?", "c8", "c16", "S3", "V5",
    [("r", "f4"), ("i", "f4")], [("r", "i2"), ("i", "i2")], [("i", "f4"), ("r", "f4")],
    [("r", "f4"), ("i", "f8")], [("r", "f4", (2,)), ("i", "f4", (2,))], ("f4", (2,)),
    h5py.string_dtype(), h5py.vlen_dtype("f4"), h5py.ref_dtype, h5py.enum_dtype({"A": 1}, "i1"),
]  # fmt: skip
LENGTHS = [0, 1, 2, 3, 7, 1 << 16, 1 << 31, 1 << 40, 1 << 62]


def odd(folder: Path) -> list[str]:
    """Outcomes of files whose headers are right and say odd things."""
    choose = random.Random("headers")
    outcomes = []
    for number in range(HEADERS):
        path = folder / f"{number}.h5"
        shape = tuple(
            choose.choice(LENGTHS) for _ in range(choose.choice([0, 1, 2, 2, 3, 3, 4, 32]))
        )
        keys: dict[str, Any] = {}
        if shape and choose.random() < 0.8:
            keys["chunks"] = tuple(choose.choice([1, 2, 1000, 1 << 20]) for _ in shape)
            keys["maxshape"] = tuple(None for _ in shape)
            keys |= choose.choice(
                [{}, {"compression": "gzip"}, {"fletcher32": True}, {"scaleoffset": 0}]
            )
        elif choose.random() < 0.2:
            keys["external"] = [(str(folder / "gone.bin"), 0, h5py.h5f.UNLIMITED)]
        with h5py.File(path, "w") as file:
            try:
                file.create_dataset("x", shape, choose.choice(TYPES), **keys)
            except (ValueError, TypeError, OSError, RuntimeError, OverflowError):
                outcomes.append("unwritable")  # a header that HDF5 does not write
                continue
        select = choose.choice(
            [{}, {"x": [choose.choice([0, -1, ":", "0:1", [0, 1]]) for _ in shape]}]
        )
        name = choose.choice(["/x", "x", {"real": "/x"}])
        outcomes.append(attempt(path, name, select=select, external=choose.random() < 0.3))
        path.unlink()
    return outcomes


def test_only_arrays_and_input_errors(tmp_path: Path, root: Path) -> None:
    """One process reads all kinds of files: to start it takes as long as a kind."""
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=4 * SECONDS,
        env=os.environ | {"PYTHONPATH": f"{root}:{root / 'kernels'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = {name: outcomes for name, *outcomes in map(str.split, done.stdout.splitlines())}
    assert list(found) == [*LAYOUTS, "odd"]
    for name, outcomes in found.items():
        cases = HEADERS if name == "odd" else FLIPS
        assert len(outcomes) == cases
        # Neither is all refused nor is nothing: then the cases would say little.
        assert 0.02 * cases < outcomes.count("refused") < 0.98 * cases, name
        assert outcomes.count("read") > 0.01 * cases, name


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    text_attributes.CPU_SECONDS = 0.2  # of a fork, some of which search for ever
    gc.freeze()  # so that forks share what is there
    for layout in LAYOUTS:
        print(layout, *flipped(Path(sys.argv[1]), layout))
    print("odd", *odd(Path(sys.argv[1])))
