"""A function of Python as a call that XLA makes, by the C interface of its foreign functions.

Only what is used here of the interface (``xla/ffi/api/c_api.h``, whose copy `jax.ffi.include_dir`
has) is declared: buffers, one attribute, the stream and errors. XLA calls on the thread that
called the program or on one of its own and, on a GPU, with the device set; the function queues its
work on the stream that it is given.

What XLA gives a call is read by `struct` where it lies: objects of ctypes take the host a
microsecond a structure, as long as a launch in all.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Any

_METADATA, _INTERNAL = 1, 13
"""XLA_FFI_Extension_Metadata and XLA_FFI_Error_Code_INTERNAL."""
TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
    9: "uint64", 10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "uint16",
    18: "complex128",
}  # fmt: skip
"""NumPy's types by XLA_FFI_DataType; 16 is bf16, whose bits are handed on."""


Buffer = tuple[int, int, tuple[int, ...]]
"""An operand or a result: its address, its XLA_FFI_DataType and its shape."""
Function = Callable[[int, list[Buffer], Buffer, int | None], None]
"""Body of a call, given its number, operands, result and the address of its stream; the last is
None on a CPU."""


_HEAD = (("size", c_size_t), ("extension", c_void_p))
"""First fields of every structure."""


class _Extension(Structure):
    _fields_ = (("size", c_size_t), ("type", c_int), ("next", c_void_p))


class _Version(Structure):
    _fields_ = (*_HEAD, ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    _fields_ = (("size", c_size_t), ("version", _Version), ("traits", c_int32))


class _MetadataExtension(Structure):
    _fields_ = (("base", _Extension), ("metadata", POINTER(_Metadata)))


class _Error(Structure):
    _fields_ = (*_HEAD, ("message", c_char_p), ("code", c_int))


class _StreamOf(Structure):
    _fields_ = (*_HEAD, ("context", c_void_p), ("stream", c_void_p))


_MEMORY = (ctypes.c_char * (1 << 62)).from_address(0)
"""The memory of this process by addresses, in which `struct` reads."""
# These read members of structures that XLA gives, as C lays them out; x are bytes between.
_CALL_FRAME = Struct("8x3P8x 16xq8xP 32xP 40xP").unpack_from
"""XLA_FFI_CallFrame: extension, API, context; of its operands the number and the addresses of
their buffers; those of results and of attributes' scalars."""
_BUFFER = Struct("16xiPqP").unpack_from
"""XLA_FFI_Buffer: type, address, rank, address of the sizes."""
_SCALAR = Struct("8xP").unpack_from
"""XLA_FFI_Scalar: address of its value."""
_API = Struct("48xP24xP").unpack_from
"""XLA_FFI_Api: the functions that make an error and return a stream."""
_ADDRESS, _NUMBER = Struct("P").unpack_from, Struct("q").unpack_from


@cache
def _many(code: str, count: int) -> Callable[[Any, int], tuple[int, ...]]:
    """Return a function that reads ``count`` addresses (code P) or int64 numbers (code q)."""
    return Struct(f"{count}{code}").unpack_from


_MAKE_ERROR = ctypes.CFUNCTYPE(c_void_p, POINTER(_Error))
_GET_STREAM = ctypes.CFUNCTYPE(c_void_p, POINTER(_StreamOf))
_HANDLER = ctypes.CFUNCTYPE(c_void_p, c_void_p)


def handler(
    function: Function, headers: str, *, on_gpu: bool, traits: int = 0
) -> ctypes._CFunctionType:
    """Return a handler for `jax.ffi.pycapsule`; it must be kept as long as XLA may call it.

    Args:
        function: an exception of its is the call's error.
        headers: the folder of XLA's headers, which say the version of the interface.
        on_gpu: whether calls have a stream.
        traits: 1, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE, where XLA may capture a call
            into a CUDA graph and replay that.
    """
    version = _version(headers)

    def handle(at: int) -> int | None:
        if not _THREAD.is_kept:
            _keep_thread()
        extension, api, context, count, operands, results, scalars = _CALL_FRAME(_MEMORY, at)
        if extension:
            found = _MetadataExtension.from_address(extension)
            if found.base.type == _METADATA:
                made = found.metadata.contents
                made.version.major, made.version.minor = version
                made.traits = traits
                return None
        try:
            (scalar,) = _ADDRESS(_MEMORY, scalars)
            (number,) = _NUMBER(_MEMORY, *_SCALAR(_MEMORY, scalar))
            given = [_buffer(x) for x in _many("P", count)(_MEMORY, operands)]
            result = _buffer(*_ADDRESS(_MEMORY, results))
            function(number, given, result, _stream(api, context) if on_gpu else None)
        except Exception as error:  # what else would cross into C++ is lost
            failure = _made_error(api, f"{type(error).__name__}: {error}")
            error.__traceback__ = error.__context__ = error.__cause__ = None  # they hold operands
            return failure
        return None

    return _HANDLER(handle)


class _Thread(threading.local):
    """Whether Python keeps its state of a thread between calls, and its question for a stream."""

    is_kept = False
    asked: _StreamOf


_THREAD = _Thread()


def _keep_thread() -> None:
    """Let Python keep its state of this thread until the process ends.

    It makes one for each call from a thread that is not its own, and drops it after the call: that
    takes longer than the call, and what CuPy keeps by threads goes with it.
    """
    ctypes.pythonapi.PyGILState_Ensure()  # never released
    _THREAD.asked = _StreamOf(ctypes.sizeof(_StreamOf))
    _THREAD.is_kept = True


def _version(headers: str) -> tuple[int, int]:
    """Return the interface's version. Raises OSError without headers, ValueError in others."""
    text = (Path(headers) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{name} (\d+)", text) for name in ("MAJOR", "MINOR")]
    if found[0] is None or found[1] is None:
        raise ValueError(f"no version of XLA's foreign functions in {headers}")
    return int(found[0][1]), int(found[1][1])


def _buffer(at: int) -> Buffer:
    kind, address, rank, sizes = _BUFFER(_MEMORY, at)
    return address, kind, _many("q", rank)(_MEMORY, sizes) if rank else ()


def _stream(api: int, context: int) -> int:
    asked = _THREAD.asked
    asked.context = context
    if _get_stream(api)(ctypes.byref(asked)):
        raise RuntimeError("XLA has no stream for this call")
    return asked.stream or 0


@cache
def _get_stream(api: int) -> Callable[..., int | None]:
    return _GET_STREAM(_API(_MEMORY, api)[1])


def _made_error(api: int, message: str) -> int | None:
    error = _Error(ctypes.sizeof(_Error), None, message.encode(), _INTERNAL)
    make_error = _MAKE_ERROR(_API(_MEMORY, api)[0])
    made: int | None = make_error(ctypes.byref(error))
    return made
