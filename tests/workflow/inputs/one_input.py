"""An input of one operand, read and refused: for tests of hostile files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from workflow.config.file_input import DatasetRef, FileInput
from workflow.files.input_error import InputError
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_operand, read_operand

AXES = ("a", "b", "c")


class OneInput(FileInput):
    x: DatasetRef


def read(path: Path, name: str = "/x", **keys: Any) -> npt.NDArray[Any]:
    return read_operand(OneInput(file=path, x=name, **keys), Operand("x", AXES))


def refused(path: Path, name: str = "/x", **keys: Any) -> str:
    """The message that both the check of the headers and the reading give."""
    source = OneInput(file=path, x=name, **keys)
    with pytest.raises(InputError) as described:
        describe_operand(source, Operand("x", AXES))
    with pytest.raises(InputError) as raised:
        read_operand(source, Operand("x", AXES))
    assert str(described.value) == str(raised.value)
    return str(raised.value)


def not_read(path: Path, **keys: Any) -> str:
    """The message that reading gives of a file whose headers are right."""
    with pytest.raises(InputError) as raised:
        read(path, **keys)
    return str(raised.value)
