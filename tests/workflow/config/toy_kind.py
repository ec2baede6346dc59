"""A kind of workload that computes nothing, to see what is said of studies of it."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from pydantic import Field, model_validator

from workflow.config.file_input import DatasetRef, FileInput, WorkloadInput
from workflow.config.mistakes import StudyError
from workflow.config.model import Model
from workflow.data import Product, Staged, blank
from workflow.implementation import Shape
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_operand
from workflow.preflight.loading import load_study
from workflow.workloads import Case, Workload


class NamedCircuit(Model):
    name: Literal["qft", "ghz"]
    qubits: int = Field(4, ge=1, le=30)


class CircuitFile(Model):
    file: Path


class ToyInput(FileInput):
    a: DatasetRef
    b: DatasetRef | None = None


class ToyCase(Case):
    kind: Literal["toy"]
    m: int = Field(8, ge=1, le=4096, description="Rows of the product.")
    k: int | None = Field(None, ge=1)
    scale: float = Field(1.0, gt=0)
    op_a: Literal["N", "T", "C"] = "N"
    alpha: tuple[float, float] = (1.0, 0.0)
    sources: list[tuple[float, float]] = Field(default_factory=list)
    window: str = "hann"
    flag: bool = False
    circuit: NamedCircuit | CircuitFile | None = None
    input: ToyInput | WorkloadInput | None = None

    @model_validator(mode="after")
    def _cross(self) -> "ToyCase":
        if self.window == "none" and self.m > 100:
            raise ValueError("m must be at most 100 where the window is none, got 101")
        return self


class Toy(Workload):
    kind: ClassVar[str] = "toy"
    case_type: ClassVar[type[Case]] = ToyCase
    reads: ClassVar[tuple[str, ...]] = ("toy",)
    stage = argand = baselines = reference = assess = product = picture = None

    def check(self, upstream=()) -> None:
        if isinstance(self.case.input, ToyInput):
            describe_operand(self.case.input, Operand("a", ("m", "k")))

    def outline(self, upstream=()):
        a = blank((self.case.m, self.case.k or 1), np.complex64)
        return Staged({"a": a}, {"a": ("m", "k")})

    def shape(self, staged, precision):
        return Shape(flops=8.0 * staged.operands["a"].size, bytes_moved=0.0)

    def result_shape(self, outline):
        return outline.operands["a"].shape

    def product_outline(self, outline):
        return Product("c", outline.operands["a"], ("m", "k"), {}, "toy")


Toy.__abstractmethods__ = frozenset()


def study(*, settings: dict[str, Any] | None = None, **workloads):
    full = {
        name: {"kind": "toy", **parameters} if isinstance(parameters, dict) else parameters
        for name, parameters in workloads.items()
    }
    return load_study({**(settings or {}), "workloads": full})


def mistakes(**arguments) -> list[str]:
    with pytest.raises(StudyError) as raised:
        study(**arguments)
    return str(raised.value).splitlines()


def mistake(**arguments) -> str:
    (line,) = mistakes(**arguments)
    return line
