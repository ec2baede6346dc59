"""libcublasLt through ctypes: as much of it as a planar complex product needs.

Names and values are those of the headers that come with CUDA 12 and 13.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks.peers._peer import CannotRunError

# library_types.h: cudaDataType.
CUDA_C_32F, CUDA_C_16F, CUDA_C_16BF = 4, 6, 15
# cublas_api.h: cublasComputeType_t, cublasOperation_t.
CUBLAS_COMPUTE_32F = 68
CUBLAS_OP_N, CUBLAS_OP_T = 0, 1
# cublasLt.h: cublasLtMatmulDescAttributes_t (int32 values).
CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB = 3, 4
# cublasLt.h: cublasLtMatrixLayoutAttribute_t; an int32 and two int64.
CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5
CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
"""Distance of the planes of planar matrices, in real elements."""
CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7
"""Attribute of a layout: bytes from the real plane to the imaginary one."""
# cublasLt.h: cublasLtMatmulPreferenceAttributes_t (a uint64).
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
PLANE_ALIGNMENT = 256
"""Alignment of every plane's address that the preference's default lets algorithms assume."""
# cublas_api.h: cublasStatus_t.
STATUS = {
    0: "SUCCESS", 1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR", 13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}  # fmt: skip


class Algorithm(ctypes.Structure):
    """cublasLt.h: cublasLtMatmulAlgo_t, 64 bytes that only the library reads."""

    _fields_ = (("data", c_uint64 * 8),)


class HeuristicResult(ctypes.Structure):
    """cublasLt.h: cublasLtMatmulHeuristicResult_t, 96 bytes."""

    _fields_ = (
        ("algorithm", Algorithm),
        ("workspace_bytes", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (POINTER(c_void_p),),
    "cublasLtMatmulDescCreate": (POINTER(c_void_p), c_int, c_int),
    "cublasLtMatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatrixLayoutCreate": (POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulPreferenceCreate": (POINTER(c_void_p),),
    "cublasLtMatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulAlgoGetHeuristic": (
        *(c_void_p,) * 7, c_int, POINTER(HeuristicResult), POINTER(c_int),
    ),
    "cublasLtMatmul": (*(c_void_p,) * 14, c_size_t, c_void_p),
}  # fmt: skip
"""Arguments of the functions that are called; each returns a cublasStatus_t."""


@lru_cache(maxsize=1)
def library() -> Any:
    """Return the library with its functions declared.

    Raises CannotRunError where it is not installed.
    """
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        raise CannotRunError("cuda-pathfinder, which finds libcublasLt, is not installed") from None
    try:
        path = load_nvidia_dynamic_lib("cublasLt").abs_path
    except RuntimeError as error:  # its own exceptions derive from this one
        reason = str(error).partition("\n")[0]
        raise CannotRunError(f"libcublasLt is not installed: {reason}") from None
    return declared(ctypes.CDLL(path))


def declared(found: Any) -> Any:
    """Return a loaded library with the argument types of ``_SIGNATURES``."""
    for name, arguments in _SIGNATURES.items():
        function = getattr(found, name)
        function.argtypes, function.restype = arguments, c_int
    return found


@dataclass(frozen=True)
class Planes:
    """The layout of planar matrices as the library sees them (column-major).

    ``rows`` and ``columns`` of one matrix, one column after the other; ``plane_bytes`` between real
    and imaginary part, ``batch`` matrices in each plane, one after the other.
    """

    kind: int
    rows: int
    columns: int
    plane_bytes: int
    batch: int


class Lt:
    """One handle of the library, and what is made with it. Descriptors live as long as the run."""

    def __init__(self, functions: Any) -> None:
        self._lib = functions
        self._handle = self._made("cublasLtCreate")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raises CannotRunError with a status that is not SUCCESS."""
        status = getattr(self._lib, name)(*arguments)
        if status != 0:
            raise CannotRunError(f"{name}: status {status} ({STATUS.get(status, 'unknown')})")

    def _made(self, name: str, *arguments: Any) -> c_void_p:
        found = c_void_p()
        self.call(name, ctypes.byref(found), *arguments)
        return found

    def _set(self, name: str, owner: c_void_p, attribute: int, value: Any) -> None:
        self.call(name, owner, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def operation(self, transpose_a: bool, transpose_b: bool) -> c_void_p:
        """Return a descriptor of D = op(A) op(B), summed in fp32."""
        found = self._made("cublasLtMatmulDescCreate", CUBLAS_COMPUTE_32F, CUDA_C_32F)
        for attribute, transposed in (
            (CUBLASLT_MATMUL_DESC_TRANSA, transpose_a),
            (CUBLASLT_MATMUL_DESC_TRANSB, transpose_b),
        ):
            flag = ctypes.c_int32(CUBLAS_OP_T if transposed else CUBLAS_OP_N)
            self._set("cublasLtMatmulDescSetAttribute", found, attribute, flag)
        return found

    def layout(self, planes: Planes) -> c_void_p:
        """Return a layout of planar matrices."""
        found = self._made(
            "cublasLtMatrixLayoutCreate", planes.kind, planes.rows, planes.columns, planes.rows
        )
        attributes: list[tuple[int, Any]] = [
            (CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, c_int64(planes.plane_bytes))
        ]
        if planes.batch > 1:
            stride = planes.rows * planes.columns
            attributes += [
                (CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, ctypes.c_int32(planes.batch)),
                (CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, c_int64(stride)),
            ]
        for attribute, value in attributes:
            self._set("cublasLtMatrixLayoutSetAttribute", found, attribute, value)
        return found

    def algorithms(
        self, operation: c_void_p, layouts: tuple[c_void_p, c_void_p, c_void_p],
        workspace_bytes: int, count: int,
    ) -> list[HeuristicResult]:  # fmt: skip
        """Return the algorithms that the heuristic offers for A, B and D, best estimate first.

        Raises CannotRunError where it offers nothing.
        """
        preference = self._made("cublasLtMatmulPreferenceCreate")
        self._set(
            "cublasLtMatmulPreferenceSetAttribute", preference,
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, c_uint64(workspace_bytes),
        )  # fmt: skip
        results, returned = (HeuristicResult * count)(), c_int()
        a, b, d = layouts
        self.call(
            "cublasLtMatmulAlgoGetHeuristic", self._handle, operation, a, b, d, d, preference,
            count, results, ctypes.byref(returned),
        )  # fmt: skip
        found = [result for result in results[: returned.value] if result.state == 0]
        if not found:
            raise CannotRunError("cublasLtMatmulAlgoGetHeuristic offers no algorithm")
        return found

    def multiply(
        self, operation: c_void_p, layouts: tuple[c_void_p, c_void_p, c_void_p],
        addresses: tuple[int, int, int], algorithm: Algorithm, workspace: tuple[int, int],
        stream: int,
    ) -> None:  # fmt: skip
        """Set D = op(A) op(B) at the addresses of the real planes.

        The workspace is (address, bytes).
        """
        a, b, d = addresses
        of_a, of_b, of_d = layouts
        self.call(
            "cublasLtMatmul", self._handle, operation, _ONE, a, of_a, b, of_b, _ZERO, d, of_d,
            d, of_d, ctypes.byref(algorithm), *workspace, stream,
        )  # fmt: skip


_ONE, _ZERO = (c_float * 2)(1, 0), (c_float * 2)(0, 0)
"""alpha and beta on the host, of the scale type CUDA_C_32F."""
