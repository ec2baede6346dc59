"""Complex matrix kernels at a precision of your choice, on the CPU and on NVIDIA GPUs."""

from argand.accelerate.api import accelerate
from argand.beam_power.api import beam_power
from argand.beam_power.problem import BeamPowerProblem
from argand.channelise.api import channelise
from argand.channelise.problem import ChanneliseProblem
from argand.contract.api import contract
from argand.device import Device, DeviceError, devices
from argand.dft.api import dft
from argand.dft.call_plan import DftPlan
from argand.dft.problem import DftProblem
from argand.dft.scipy_backend import fft_backend
from argand.dft.tune import tune_dft
from argand.gates.api import apply_gate
from argand.gates.circuit_search import CircuitPlan
from argand.gates.circuits import CircuitRecord, plan_circuit, run_circuit
from argand.gates.gate import Gate
from argand.gates.measure import measure_gate_costs
from argand.gates.prepared_circuit import PreparedCircuit
from argand.gates.trajectories import run_trajectories
from argand.gemm.api import gemm
from argand.gemm.call_plan import GemmPlan
from argand.gemm.modular.proof import WrongProductError
from argand.gemm.pack.api import pack
from argand.gemm.pack.packed import Packed
from argand.gemm.pairs import Pairs, pairs, to_pairs
from argand.gemm.problem import GemmProblem
from argand.gemm.tune import tune
from argand.herk.api import herk
from argand.herk.problem import HerkProblem
from argand.hermitian.api import solve_hermitian
from argand.image.api import image
from argand.image.call_plan import ImagePlan
from argand.precision import PRECISIONS, Precision, get_precision
from argand.readout.api import Counts, expectation, probabilities, sample
from argand.runtime.launch.kernel_trace import launched
from argand.runtime.memory.workspace_limit import WorkspaceError, workspace_limit
from argand.softmax.api import log_softmax, logsumexp, softmax
from argand.softmax.call_plan import SoftmaxPlan
from argand.softmax.problem import SoftmaxProblem
from argand.softmax.tune import tune_softmax
from argand.solve.api import solve
from argand.solve.refine import Solution
from argand.spectrum.api import spectrum
from argand.spectrum.problem import SpectrumProblem

__version__ = "0.1.0"

__all__ = [
    "PRECISIONS",
    "BeamPowerProblem",
    "ChanneliseProblem",
    "CircuitPlan",
    "CircuitRecord",
    "Counts",
    "Device",
    "DeviceError",
    "DftPlan",
    "DftProblem",
    "Gate",
    "GemmPlan",
    "GemmProblem",
    "HerkProblem",
    "ImagePlan",
    "Packed",
    "Pairs",
    "Precision",
    "PreparedCircuit",
    "SoftmaxPlan",
    "SoftmaxProblem",
    "Solution",
    "SpectrumProblem",
    "WorkspaceError",
    "WrongProductError",
    "accelerate",
    "apply_gate",
    "beam_power",
    "channelise",
    "contract",
    "devices",
    "dft",
    "expectation",
    "fft_backend",
    "gemm",
    "get_precision",
    "herk",
    "image",
    "launched",
    "log_softmax",
    "logsumexp",
    "measure_gate_costs",
    "pack",
    "pairs",
    "plan_circuit",
    "probabilities",
    "run_circuit",
    "run_trajectories",
    "sample",
    "softmax",
    "solve",
    "solve_hermitian",
    "spectrum",
    "to_pairs",
    "tune",
    "tune_dft",
    "tune_softmax",
    "workspace_limit",
]
