"""A stand-in for the package baseband, as far as it is called."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from tests.workflow.readers.uvh5_file import case


class SampleShape(NamedTuple):
    npol: int
    nchan: int


class Time:
    """A stand-in for astropy's time, which says milliseconds where no more digits are asked for."""

    precision = 3

    def copy(self) -> Time:
        return Time()

    @property
    def isot(self) -> str:
        return "2018-01-14T14:11:33." + "000001250"[: self.precision]


class Stream:
    """A stand-in for baseband's stream readers, as far as they are used."""

    shape = (6, 2, 3)
    complex_data = True
    bps = 8
    sample_shape = SampleShape(2, 3)
    data = np.arange(36).reshape(shape) * (1 + 1j)

    start_time = Time()
    header0: ClassVar[dict[str, Any]] = {}

    class sample_rate:  # noqa: N801
        @staticmethod
        def to_value(unit: str) -> float:
            assert unit == "Hz"
            return 4.0

    def __enter__(self) -> Stream:
        self.at = 0
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def seek(self, at: int) -> None:
        self.at = at

    def read(self, count: int) -> Any:
        return self.data[self.at : self.at + count]


def dada_case(path: Path, monkeypatch: pytest.MonkeyPatch, header: Any) -> Any:
    """Return a case of a DADA file at ``path``, which is written, with this header."""
    path.write_bytes(bytes(2 * 36))
    monkeypatch.setattr(Stream, "header0", header)
    install(monkeypatch, "dada", lambda *_, **__: Stream())
    return case(path, format="dada", samples="voltages") | {"axis": "time"}


def install(monkeypatch: pytest.MonkeyPatch, name: str, opened: Any) -> None:
    """Put a stand-in of one of baseband's modules in its place."""
    module = types.ModuleType(f"baseband.{name}")
    module.open = opened  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "baseband", types.ModuleType("baseband"))
    monkeypatch.setitem(sys.modules, f"baseband.{name}", module)
