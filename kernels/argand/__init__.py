"""Complex matrix kernels at a precision of your choice, on the CPU and on NVIDIA GPUs."""

from argand.device import Device, DeviceError, devices
from argand.dft import DftProblem, dft
from argand.fft_backend import FftBackend, fft_backend
from argand.gemm import GemmProblem, gemm
from argand.packing import Packed, pack
from argand.pairs import Pairs, pairs, to_pairs
from argand.precision import PRECISIONS, Precision, get_precision
from argand.softmax import SoftmaxProblem, log_softmax, logsumexp, softmax
from argand.tune import tune

__version__ = "0.1.0"

__all__ = [
    "PRECISIONS",
    "Device",
    "DeviceError",
    "DftProblem",
    "FftBackend",
    "GemmProblem",
    "Packed",
    "Pairs",
    "Precision",
    "SoftmaxProblem",
    "devices",
    "dft",
    "fft_backend",
    "gemm",
    "get_precision",
    "log_softmax",
    "logsumexp",
    "pack",
    "pairs",
    "softmax",
    "to_pairs",
    "tune",
]
