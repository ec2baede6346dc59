"""Written by python -m tools.docs from the signatures of the public names."""

from argand.accelerate.api import accelerate as accelerate
from argand.beam_power.problem import BeamPowerProblem as BeamPowerProblem, Detect
from argand.channelise.problem import ChanneliseProblem as ChanneliseProblem
from argand.device import Device as Device, DeviceError as DeviceError, devices as devices
from argand.dft.problem import DftProblem as DftProblem
from argand.dft.scipy_backend import fft_backend as fft_backend
from argand.dft.tune import tune_dft as tune_dft
from argand.frameworks.call_plan import CallPlan, OneArrayPlan
from argand.gates.circuit_search import CircuitPlan as CircuitPlan
from argand.gates.circuits import CircuitRecord as CircuitRecord, plan_circuit as plan_circuit
from argand.gates.gate import Gate as Gate
from argand.gates.measure import measure_gate_costs as measure_gate_costs
from argand.gates.prepared_circuit import PreparedCircuit as PreparedCircuit
from argand.gates.trajectories import run_trajectories as run_trajectories
from argand.gemm.families import Family
from argand.gemm.modular.proof import WrongProductError as WrongProductError
from argand.gemm.operands import Op, Side
from argand.gemm.pack.packed import Packed as Packed
from argand.gemm.pairs import Pairs as Pairs
from argand.gemm.problem import GemmProblem as GemmProblem, Output
from argand.gemm.tune import tune as tune
from argand.herk.problem import Form, HerkProblem as HerkProblem
from argand.precision import PRECISIONS as PRECISIONS, Precision as Precision, get_precision as get_precision
from argand.readout.api import Counts as Counts
from argand.runtime.launch.kernel_trace import launched as launched
from argand.runtime.memory.workspace_limit import WorkspaceError as WorkspaceError, workspace_limit as workspace_limit
from argand.softmax.formats import Operation
from argand.softmax.problem import SoftmaxProblem as SoftmaxProblem
from argand.softmax.tune import tune_softmax as tune_softmax
from argand.solve.refine import Solution as Solution
from argand.spectrum.problem import SpectrumProblem as SpectrumProblem
from argand.typing import Array, ArrayT, GateLike, Observable, Operand, PrecisionLike, TensorType
from collections.abc import Sequence
from fractions import Fraction
from numpy.typing import DTypeLike, NDArray
from typing import Any, Generic, Literal, overload
from typing_extensions import TypeVar

_ResultT = TypeVar("_ResultT", default=Any)
__version__: str
__all__ = [
    "PRECISIONS", "BeamPowerProblem", "ChanneliseProblem", "CircuitPlan", "CircuitRecord",
    "Counts", "Device", "DeviceError", "DftPlan", "DftProblem", "Gate", "GemmPlan",
    "GemmProblem", "HerkProblem", "ImagePlan", "Packed", "Pairs", "Precision",
    "PreparedCircuit", "SoftmaxPlan", "SoftmaxProblem", "Solution", "SpectrumProblem",
    "WorkspaceError", "WrongProductError", "accelerate", "apply_gate", "beam_power",
    "channelise", "contract", "devices", "dft", "expectation", "fft_backend", "gemm",
    "get_precision", "herk", "image", "launched", "log_softmax", "logsumexp",
    "measure_gate_costs", "pack", "pairs", "plan_circuit", "probabilities", "run_circuit",
    "run_trajectories", "sample", "softmax", "solve", "solve_hermitian", "spectrum", "to_pairs",
    "tune", "tune_dft", "tune_softmax", "workspace_limit"
]

class DftPlan(OneArrayPlan, Generic[_ResultT]):
    @overload
    def __init__(
        self: DftPlan[NDArray[Any]], x: NDArray[Any], axis: int = -1, *, n: int | None = None,
        inverse: bool = False, norm: str = 'backward', precision: PrecisionLike = None,
        rounding: Sequence[str] | str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: DftPlan[ArrayT], x: ArrayT, axis: int = -1, *, n: int | None = None,
        inverse: bool = False, norm: str = 'backward', precision: PrecisionLike = None,
        rounding: Sequence[str] | str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: DftPlan[Any], x: Operand, axis: int = -1, *, n: int | None = None,
        inverse: bool = False, norm: str = 'backward', precision: PrecisionLike = None,
        rounding: Sequence[str] | str | None = None
    ) -> None: ...
    def __call__(
        self, x: Operand, *, out: Operand | None = None
    ) -> _ResultT: ...

class GemmPlan(CallPlan, Generic[_ResultT]):
    @overload
    def __init__(
        self: GemmPlan[NDArray[Any]], a: NDArray[Any], b: Operand, c: Operand | None = None, *,
        alpha: complex = 1, beta: complex = 0, op_a: Op = 'N', op_b: Op = 'N',
        precision: PrecisionLike = None, tolerance: float | None = None,
        rounding: Sequence[str] | str | None = None,
        output: Literal["complex64", "complex128"] | None = None, kernels: Family | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: GemmPlan[ArrayT], a: ArrayT, b: Operand, c: Operand | None = None, *,
        alpha: complex = 1, beta: complex = 0, op_a: Op = 'N', op_b: Op = 'N',
        precision: PrecisionLike = None, tolerance: float | None = None,
        rounding: Sequence[str] | str | None = None,
        output: Literal["complex64", "complex128"] | None = None, kernels: Family | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: GemmPlan[Any], a: Operand, b: Operand, c: Operand | None = None, *,
        alpha: complex = 1, beta: complex = 0, op_a: Op = 'N', op_b: Op = 'N',
        precision: PrecisionLike = None, tolerance: float | None = None,
        rounding: Sequence[str] | str | None = None, output: Output | None = None,
        kernels: Family | None = None
    ) -> None: ...
    def __call__(
        self, a: Operand, b: Operand, c: Operand | None = None, *, out: Operand | None = None
    ) -> _ResultT: ...

class ImagePlan(CallPlan, Generic[_ResultT]):
    @overload
    def __init__(
        self: ImagePlan[NDArray[Any]], covariances: NDArray[Any], positions: Operand,
        frequencies: Operand, directions: Operand, *, precision: PrecisionLike = None, sign: int = 1
    ) -> None: ...
    @overload
    def __init__(
        self: ImagePlan[ArrayT], covariances: ArrayT, positions: Operand, frequencies: Operand,
        directions: Operand, *, precision: PrecisionLike = None, sign: int = 1
    ) -> None: ...
    @overload
    def __init__(
        self: ImagePlan[Any], covariances: Operand, positions: Operand, frequencies: Operand,
        directions: Operand, *, precision: PrecisionLike = None, sign: int = 1
    ) -> None: ...
    def __call__(
        self, covariances: Operand, positions: Operand, frequencies: Operand, directions: Operand,
        *, out: Operand | None = None
    ) -> _ResultT: ...

class SoftmaxPlan(OneArrayPlan, Generic[_ResultT]):
    @overload
    def __init__(
        self: SoftmaxPlan[NDArray[Any]], x: NDArray[Any], axis: int = -1, *,
        function: Operation = 'softmax', precision: PrecisionLike = None,
        rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
        format: str | None = None, output: str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: SoftmaxPlan[ArrayT], x: ArrayT, axis: int = -1, *, function: Operation = 'softmax',
        precision: PrecisionLike = None, rounding: Sequence[str] | str | None = None,
        scale: float = 1.0, power: bool = False, format: str | None = None,
        output: str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: SoftmaxPlan[Any], x: Operand, axis: int = -1, *, function: Operation = 'softmax',
        precision: PrecisionLike = None, rounding: Sequence[str] | str | None = None,
        scale: float = 1.0, power: bool = False, format: str | None = None,
        output: str | None = None
    ) -> None: ...
    def __call__(
        self, x: Operand, *, out: Operand | None = None
    ) -> _ResultT: ...

@overload
def apply_gate(
    state: NDArray[Any], matrix: Operand, targets: Sequence[int], *,
    controls: Sequence[int] = (), precision: PrecisionLike = None
) -> NDArray[Any]: ...

@overload
def apply_gate(
    state: ArrayT, matrix: Operand, targets: Sequence[int], *, controls: Sequence[int] = (),
    precision: PrecisionLike = None
) -> ArrayT: ...

@overload
def apply_gate(
    state: Operand, matrix: Operand, targets: Sequence[int], *, controls: Sequence[int] = (),
    precision: PrecisionLike = None
) -> Any: ...

@overload
def beam_power(
    weights: NDArray[Any], samples: Operand, *, detect: Detect = 'power', integrate: int = 1,
    precision: PrecisionLike = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def beam_power(
    weights: ArrayT, samples: Operand, *, detect: Detect = 'power', integrate: int = 1,
    precision: PrecisionLike = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def beam_power(
    weights: Operand, samples: Operand, *, detect: Detect = 'power', integrate: int = 1,
    precision: PrecisionLike = None, out: Operand | None = None
) -> Any: ...

@overload
def channelise(
    x: NDArray[Any], channels: int, taps: int = 8, *, window: Operand = 'hamming',
    oversampling: float | str | Fraction = 1, conjugate: bool = False,
    precision: PrecisionLike = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def channelise(
    x: ArrayT, channels: int, taps: int = 8, *, window: Operand = 'hamming',
    oversampling: float | str | Fraction = 1, conjugate: bool = False,
    precision: PrecisionLike = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def channelise(
    x: Operand, channels: int, taps: int = 8, *, window: Operand = 'hamming',
    oversampling: float | str | Fraction = 1, conjugate: bool = False,
    precision: PrecisionLike = None, out: Operand | None = None
) -> Any: ...

@overload
def contract(
    subscripts: str, a: NDArray[Any], b: Operand, *, conj_a: bool = False, conj_b: bool = False,
    scale: Operand = 1, bias: Operand | None = None, conj: bool = False, power: bool = False,
    precision: PrecisionLike = None, tolerance: float | None = None,
    rounding: Sequence[str] | str | None = None, dtype: DTypeLike | TensorType | None = None,
    out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def contract(
    subscripts: str, a: ArrayT, b: Operand, *, conj_a: bool = False, conj_b: bool = False,
    scale: Operand = 1, bias: Operand | None = None, conj: bool = False, power: bool = False,
    precision: PrecisionLike = None, tolerance: float | None = None,
    rounding: Sequence[str] | str | None = None, dtype: DTypeLike | TensorType | None = None,
    out: Operand | None = None
) -> ArrayT: ...

@overload
def contract(
    subscripts: str, a: Operand, b: Operand, *, conj_a: bool = False, conj_b: bool = False,
    scale: Operand = 1, bias: Operand | None = None, conj: bool = False, power: bool = False,
    precision: PrecisionLike = None, tolerance: float | None = None,
    rounding: Sequence[str] | str | None = None, dtype: DTypeLike | TensorType | None = None,
    out: Operand | None = None
) -> Any: ...

@overload
def dft(
    x: NDArray[Any], axis: int = -1, *, n: int | None = None, inverse: bool = False,
    norm: str = 'backward', precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def dft(
    x: ArrayT, axis: int = -1, *, n: int | None = None, inverse: bool = False,
    norm: str = 'backward', precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def dft(
    x: Operand, axis: int = -1, *, n: int | None = None, inverse: bool = False,
    norm: str = 'backward', precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, out: Operand | None = None
) -> Any: ...

@overload
def expectation(
    state: NDArray[Any], observables: Sequence[Observable]
) -> NDArray[Any]: ...

@overload
def expectation(
    state: ArrayT, observables: Sequence[Observable]
) -> ArrayT: ...

@overload
def expectation(
    state: Operand, observables: Sequence[Observable]
) -> Any: ...

@overload
def gemm(
    a: NDArray[Any], b: Operand, c: Operand | None = None, *, alpha: complex = 1,
    beta: complex = 0, op_a: Op = 'N', op_b: Op = 'N', precision: PrecisionLike = None,
    tolerance: float | None = None, check: bool = False,
    rounding: Sequence[str] | str | None = None,
    output: Literal["complex64", "complex128"] | None = None, out: Operand | None = None,
    kernels: Family | None = None
) -> NDArray[Any]: ...

@overload
def gemm(
    a: ArrayT, b: Operand, c: Operand | None = None, *, alpha: complex = 1, beta: complex = 0,
    op_a: Op = 'N', op_b: Op = 'N', precision: PrecisionLike = None,
    tolerance: float | None = None, check: bool = False,
    rounding: Sequence[str] | str | None = None,
    output: Literal["complex64", "complex128"] | None = None, out: Operand | None = None,
    kernels: Family | None = None
) -> ArrayT: ...

@overload
def gemm(
    a: Operand, b: Operand, c: Operand | None = None, *, alpha: complex = 1, beta: complex = 0,
    op_a: Op = 'N', op_b: Op = 'N', precision: PrecisionLike = None,
    tolerance: float | None = None, check: bool = False,
    rounding: Sequence[str] | str | None = None, output: Output | None = None,
    out: Operand | None = None, kernels: Family | None = None
) -> Any: ...

@overload
def herk(
    a: NDArray[Any], c: Operand | None = None, *, alpha: float = 1, beta: float = 0,
    op: Op = 'N', precision: PrecisionLike = None, rounding: Sequence[str] | str | None = None,
    form: Form = 'full', out: Operand | None = None, kernels: Family | None = None
) -> NDArray[Any]: ...

@overload
def herk(
    a: ArrayT, c: Operand | None = None, *, alpha: float = 1, beta: float = 0, op: Op = 'N',
    precision: PrecisionLike = None, rounding: Sequence[str] | str | None = None,
    form: Form = 'full', out: Operand | None = None, kernels: Family | None = None
) -> ArrayT: ...

@overload
def herk(
    a: Operand, c: Operand | None = None, *, alpha: float = 1, beta: float = 0, op: Op = 'N',
    precision: PrecisionLike = None, rounding: Sequence[str] | str | None = None,
    form: Form = 'full', out: Operand | None = None, kernels: Family | None = None
) -> Any: ...

@overload
def image(
    covariances: NDArray[Any], positions: Operand, frequencies: Operand, directions: Operand, *,
    precision: PrecisionLike = None, sign: int = 1, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def image(
    covariances: ArrayT, positions: Operand, frequencies: Operand, directions: Operand, *,
    precision: PrecisionLike = None, sign: int = 1, out: Operand | None = None
) -> ArrayT: ...

@overload
def image(
    covariances: Operand, positions: Operand, frequencies: Operand, directions: Operand, *,
    precision: PrecisionLike = None, sign: int = 1, out: Operand | None = None
) -> Any: ...

@overload
def log_softmax(
    x: NDArray[Any], axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def log_softmax(
    x: ArrayT, axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def log_softmax(
    x: Operand, axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> Any: ...

@overload
def logsumexp(
    x: NDArray[Any], axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def logsumexp(
    x: ArrayT, axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def logsumexp(
    x: Operand, axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> Any: ...

def pack(
    x: Operand, precision: PrecisionLike, *, side: Side = 'a', op: Op = 'N',
    rounding: Sequence[str] | str | None = None, kernels: Family | None = None
) -> Packed: ...

def pairs(
    array: Operand, format: str | None = None
) -> Pairs: ...

@overload
def probabilities(
    state: NDArray[Any], qubits: Sequence[int]
) -> NDArray[Any]: ...

@overload
def probabilities(
    state: ArrayT, qubits: Sequence[int]
) -> ArrayT: ...

@overload
def probabilities(
    state: Operand, qubits: Sequence[int]
) -> Any: ...

def run_circuit(
    state: Operand, gates: Sequence[GateLike] | CircuitPlan, *, precision: PrecisionLike = None,
    reference: Operand | None = None
) -> CircuitRecord: ...

def sample(
    state: Operand, shots: int, *, seed: int, qubits: Sequence[int] | None = None
) -> Counts: ...

@overload
def softmax(
    x: NDArray[Any], axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def softmax(
    x: ArrayT, axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def softmax(
    x: Operand, axis: int = -1, *, precision: PrecisionLike = None,
    rounding: Sequence[str] | str | None = None, scale: float = 1.0, power: bool = False,
    format: str | None = None, output: str | None = None, out: Operand | None = None
) -> Any: ...

@overload
def solve(
    a: NDArray[Any], b: Operand, *, precision: PrecisionLike = None, block: int | None = None,
    panel: int | None = None, details: Literal[False] = False
) -> NDArray[Any]: ...

@overload
def solve(
    a: ArrayT, b: Operand, *, precision: PrecisionLike = None, block: int | None = None,
    panel: int | None = None, details: Literal[False] = False
) -> ArrayT: ...

@overload
def solve(
    a: Operand, b: Operand, *, precision: PrecisionLike = None, block: int | None = None,
    panel: int | None = None, details: bool = False
) -> Any: ...

@overload
def solve_hermitian(
    r: NDArray[Any], b: Operand, *, out: Operand | None = None, info: Operand | None = None
) -> NDArray[Any]: ...

@overload
def solve_hermitian(
    r: ArrayT, b: Operand, *, out: Operand | None = None, info: Operand | None = None
) -> ArrayT: ...

@overload
def solve_hermitian(
    r: Operand, b: Operand, *, out: Operand | None = None, info: Operand | None = None
) -> Any: ...

@overload
def spectrum(
    x: NDArray[Any], length: int, *, overlap: int | None = None, window: Operand = 'hann',
    average: int | str = 1, detrend: str | None = None, scaling: str = 'density',
    sample_rate: float = 1.0, onesided: bool | None = None, conjugate: bool = False,
    precision: PrecisionLike = None, out: Operand | None = None
) -> NDArray[Any]: ...

@overload
def spectrum(
    x: ArrayT, length: int, *, overlap: int | None = None, window: Operand = 'hann',
    average: int | str = 1, detrend: str | None = None, scaling: str = 'density',
    sample_rate: float = 1.0, onesided: bool | None = None, conjugate: bool = False,
    precision: PrecisionLike = None, out: Operand | None = None
) -> ArrayT: ...

@overload
def spectrum(
    x: Operand, length: int, *, overlap: int | None = None, window: Operand = 'hann',
    average: int | str = 1, detrend: str | None = None, scaling: str = 'density',
    sample_rate: float = 1.0, onesided: bool | None = None, conjugate: bool = False,
    precision: PrecisionLike = None, out: Operand | None = None
) -> Any: ...

def to_pairs(
    x: Operand, format: str
) -> Pairs: ...
