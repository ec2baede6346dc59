"""Voltages of GUPPI, DADA and VDIF files, by the package baseband.

It is under the GPL, so nothing here depends on it: it is imported where a study names such a format
and the user has installed it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workflow.data import Array, Coordinate, Product, blank
from workflow.readers.base import Reader
from workflow.storage.files import is_file
from workflow.storage.input_operand import InputError

AXES = {"nchan": "frequency", "channel": "frequency", "npol": "polarization", "nthread": "thread"}
"""baseband's names of the axes of a sample; others keep theirs."""


class Voltages(Reader):
    """``voltages`` (time, ...), real where the file's samples are."""

    names: ClassVar[tuple[str, ...]] = ("voltages",)
    module: ClassVar[str]
    """Operands of baseband files."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not is_file(path):
            raise InputError(f"input.file: there is no file {path} (looked in {Path.cwd()})")
        try:
            self._package = importlib.import_module(f"baseband.{self.module}")
        except ImportError as error:
            raise InputError(
                f"input.format: {self.module} needs the package baseband ({error}); install it "
                "beside Argand: pip install baseband"
            ) from error

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        with self._opened() as stream:
            shape = tuple(int(n) for n in stream.shape)
            rate = float(stream.sample_rate.to_value("Hz"))
            fields = getattr(stream.sample_shape, "_fields", ())
            kind = np.complex64 if stream.complex_data else np.float32
            bits = int(stream.bps) * (2 if stream.complex_data else 1)
        held, size = math.prod(shape[1:]) * bits, self.path.stat().st_size
        if shape[0] < 0 or held <= 0 or shape[0] * held > 8 * size:
            raise InputError(
                f"input.file: {self.path} is damaged or lacks frames: it tells of samples of shape "
                f"{shape} in {bits} bits each, and has {size} bytes"
            )
        named = [AXES.get(field, field) for field in fields]
        if len(named) != len(shape) - 1:
            named = [f"axis_{number}" for number in range(1, len(shape))]
        time = Coordinate(np.arange(shape[0]) / rate, "s", "time since the first sample")
        return Product(name, blank(shape, kind), ("time", *named), {"time": time}, "voltages")

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        with self._opened() as stream:
            stream.seek(part[0].start)
            found = np.asarray(stream.read(part[0].stop - part[0].start))
            kind = np.complex64 if stream.complex_data else np.float32
        return np.asarray(found[(slice(None), *part[1:])], kind)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """Yield a stream of samples, none of its axes of length 1 left out."""
        try:
            with self._package.open(str(self.path), "rs", squeeze=False) as stream:
                yield stream
        except Exception as error:  # baseband and astropy raise of many kinds for a damaged file
            raise InputError(
                f"input.file: {self.path} cannot be read as {self.module} ({error})"
            ) from error


class Guppi(Voltages):
    """Green Bank's raw files."""

    module: ClassVar[str] = "guppi"


class Dada(Voltages):
    """PSRDADA's files."""

    module: ClassVar[str] = "dada"


class Vdif(Voltages):
    """VLBI Data Interchange Format."""

    module: ClassVar[str] = "vdif"
