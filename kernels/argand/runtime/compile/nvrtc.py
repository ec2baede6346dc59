"""NVRTC through ctypes, found as cuda-bindings and CuPy find it. Calls release the GIL.

The bindings of NVRTC bring those of the driver. A first call would wait for their import before its
kernels begin to compile: 44 ms until the first answer in place of 25, most of which pathfinder
takes (medians of eight processes on an AMD EPYC without a GPU).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

OLDEST = (12, 9)
"""The oldest NVRTC under which every kernel that the tests compile has no spills, no stack and no
warnings. For Hopper 12.4 spills in tiles of two terms, 12.5 and 12.6 serialize wgmma in some of one
term, and 12.8 does in some of beam power and of transforms of 16 bits (ptxas warns, C7515)."""
_loading = Lock()


class CompileError(RuntimeError):
    """NVRTC is missing or rejected a source; the message holds its log."""


@cache
def nvrtc_version() -> str:
    """Return NVRTC's version. Raises CompileError where it is not installed."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_program(source: str, options: Sequence[str]) -> tuple[bytes, str]:
    """Compile CUDA C++ for the architecture that the options name; return the cubin and the log.

    Raises CompileError where NVRTC is missing or reports an error.
    """
    program = ctypes.c_void_p()
    _call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"argand.cu", 0, None, None)
    try:
        flags = [option.encode() for option in options]
        given = (ctypes.c_char_p * len(flags))(*flags)
        _call("nvrtcCompileProgram", program, len(flags), given, program=program)
        cubin = _bytes("nvrtcGetCUBIN", program)
        return cubin, _log(program)
    finally:
        _library().nvrtcDestroyProgram(ctypes.byref(program))


def _library() -> ctypes.CDLL:
    # Loaded by two threads at once, NVRTC does not find its own builtins.
    with _loading:
        return _loaded()


@cache
def _loaded() -> ctypes.CDLL:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        found = load_nvidia_dynamic_lib("nvrtc").abs_path
    except (ImportError, RuntimeError) as error:
        raise CompileError(f"NVRTC cannot be used ({error}): install cuda-bindings") from error
    if found is None:
        raise CompileError("NVRTC cannot be used: another library has loaded it from nowhere known")
    library = ctypes.CDLL(found)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _call(name: str, *given: Any, program: ctypes.c_void_p | None = None) -> None:
    """Call a function. Raises CompileError with the program's log where it reports an error."""
    error = getattr(_library(), name)(*given)
    if error:
        log = "" if program is None else f"\n{_log(program)}"
        raise CompileError(f"NVRTC: {_library().nvrtcGetErrorString(error).decode()}{log}")


def _bytes(name: str, program: ctypes.c_void_p) -> bytes:
    """Return the bytes that NVRTC's function ``name`` copies; ``nameSize`` gives their number."""
    size = ctypes.c_size_t()
    _call(f"{name}Size", program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    _call(name, program, found)
    return found.raw


def _log(program: ctypes.c_void_p) -> str:
    try:
        text = _bytes("nvrtcGetProgramLog", program)
    except CompileError as error:
        return f"(no log: {error})"
    return text.rstrip(b"\0").decode(errors="replace")
