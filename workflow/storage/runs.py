"""Run files: what the run step computed, ``/results/<implementation>/<precision>``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from argand.runtime.measuring.ceilings import Ceilings

from workflow.data import Array
from workflow.implementation import OURS
from workflow.measuring.readings import Measurements
from workflow.storage.datasets import (
    create,
    members,
    open_written,
    read_dataset,
    without_values,
    write_dataset,
)
from workflow.storage.failures import DataError
from workflow.storage.slabs import SlabWriter


@dataclass(frozen=True, kw_only=True)
class Result(Measurements):
    """One implementation's result at one precision, with its measurements.

    ``data`` is None when it could not be computed; ``reason`` then says why. ``rounding`` is that
    of the precision's terms, which a peer may do in its own way; commas between them. The words
    of the plan are the implementation's.
    """

    implementation: str
    precision: str
    algorithm: str
    device: str
    backend: str
    data: Array | None
    reason: str = ""
    rounding: str = ""
    plan_words: str = ""
    kernel_digest: str = ""
    versions: str = ""
    timestamp: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is ours, not a peer's."""
        return self.implementation == OURS


class RunWriter:
    """Adds results to a run file one at a time, so that only one is in memory.

    What it returns of a result is what the file has of it, without the data.
    """

    def __init__(self, file: h5py.File) -> None:
        self._results = file.create_group("results", track_order=True)

    def add(self, result: Result) -> Result:
        """Write one result, its data as a dataset, the rest as attributes."""
        if result.implementation not in self._results:
            self._results.create_group(result.implementation, track_order=True)
        group = self._results[result.implementation].create_group(result.precision)
        for field in fields(result):
            value = getattr(result, field.name)
            if field.name != "data" and value is not None:
                group.attrs[field.name] = value
        if result.data is not None:
            write_dataset(group, "data", result.data)
        return replace(result, data=None)

    @contextlib.contextmanager
    def slabs(
        self, result: Result, shape: Sequence[int], dtype: npt.DTypeLike, axis: int, most: int
    ) -> Iterator[SlabWriter]:
        """Write the data of a result that was added without, slab by slab; see `SlabWriter`.

        Where the block ends with an error, the result is again without data.
        """
        group = self._results[f"{result.implementation}/{result.precision}"]
        try:
            with SlabWriter(group, "data", shape, dtype, axis, most) as writer:
                yield writer
                writer.finish()
        except BaseException:
            del group["data"]
            raise

    def add_ceilings(self, ceilings: Ceilings) -> None:
        """Write what the device could do while the results were timed."""
        self._results.attrs["ceilings"] = ceilings.to_json()

    def amend(self, result: Result, **changes: Any) -> Result:
        """Change a result that was added: attributes of these names; None takes one away."""
        attributes = self._results[f"{result.implementation}/{result.precision}"].attrs
        for key, value in changes.items():
            if value is not None:
                attributes[key] = value
            elif key in attributes:
                del attributes[key]
        return replace(result, **changes)


@contextlib.contextmanager
def write_run(path: Path, workload: str, attributes: Mapping[str, Any]) -> Iterator[RunWriter]:
    """Yield a run file that appears when the block ends without error."""
    with create(path, "run", {"workload": workload, **attributes}) as file:
        yield RunWriter(file)


class RunFile:
    """An open run file: `open_run`.

    ``results`` are in the order they were written, all of them without their data.
    """

    def __init__(self, file: h5py.File) -> None:
        self._groups: dict[tuple[str, str], h5py.Group] = {}
        for implementation, precisions in members(file["results"]).items():
            for precision, group in members(precisions).items():
                self._groups[implementation, precision] = group
        self.results = [
            Result(data=None, **{key: _plain(value) for key, value in group.attrs.items()})
            for group in self._groups.values()
        ]

    def outline(self, result: Result) -> Array | None:
        """Return the shape and type of a result's data (`without_values`).

        It is None where the result has none.
        """
        data = self._data(result)
        return None if data is None else without_values(data)

    def result(self, implementation: str, precision: str) -> Result:
        """Return one of the results; raises KeyError where it is not there."""
        for result in self.results:
            if (result.implementation, result.precision) == (implementation, precision):
                return result
        raise KeyError(f"no result of {implementation} at {precision}")

    def read(self, result: Result, part: Sequence[slice] | None = None) -> Array:
        """Return a result's data, or a range of each axis; raises KeyError where it has none."""
        data = self._data(result)
        if data is None:
            raise KeyError(f"{result.implementation} at {result.precision} has no data")
        return read_dataset(data, part)

    def _data(self, result: Result) -> h5py.Dataset | None:
        return self._groups[result.implementation, result.precision].get("data")


@contextlib.contextmanager
def open_run(path: Path) -> Iterator[RunFile]:
    """Open a run file. Raises DataError, also for damage that shows within the block."""
    with open_written(path, "run") as file:
        yield RunFile(file)


def read_ceilings(path: Path) -> Ceilings:
    """Return the ceilings of a run file. Raises DataError where it has none or is damaged."""
    with open_written(path, "run") as file:
        text = file["results"].attrs.get("ceilings")
    if text is None:
        raise DataError(f"{path}: holds no ceilings; delete it and run again")
    return Ceilings.from_json(str(text))


def _plain(value: Any) -> Any:
    """Return an attribute as Python's own type: h5py gives NumPy's scalars."""
    return value.item() if isinstance(value, np.generic) else value
