"""Complex matrix kernels at a precision of your choice, on the CPU and on NVIDIA GPUs."""

from argand.circuits import CircuitPlan, CircuitRecord, plan_circuit, run_circuit
from argand.device import Device, DeviceError, devices
from argand.dft import DftProblem, dft
from argand.dft_tune import tune_dft
from argand.fft_backend import FftBackend, fft_backend
from argand.gate_measuring import measure_gate_costs
from argand.gate_order import Gate
from argand.gates import apply_gate
from argand.gemm import GemmProblem, gemm
from argand.launches import launched
from argand.packing import Packed, pack
from argand.pairs import Pairs, pairs, to_pairs
from argand.precision import PRECISIONS, Precision, get_precision
from argand.softmax import SoftmaxProblem, log_softmax, logsumexp, softmax
from argand.softmax_tune import tune_softmax
from argand.tune import tune

__version__ = "0.1.0"

__all__ = [
    "PRECISIONS",
    "CircuitPlan",
    "CircuitRecord",
    "Device",
    "DeviceError",
    "DftProblem",
    "FftBackend",
    "Gate",
    "GemmProblem",
    "Packed",
    "Pairs",
    "Precision",
    "SoftmaxProblem",
    "apply_gate",
    "devices",
    "dft",
    "fft_backend",
    "gemm",
    "get_precision",
    "launched",
    "log_softmax",
    "logsumexp",
    "measure_gate_costs",
    "pack",
    "pairs",
    "plan_circuit",
    "run_circuit",
    "softmax",
    "to_pairs",
    "tune",
    "tune_dft",
    "tune_softmax",
]
