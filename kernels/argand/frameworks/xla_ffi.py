"""A function of Python as a call that XLA makes, by the C interface of its foreign functions.

Of the interface (``xla/ffi/api/c_api.h``, whose copy `jax.ffi.include_dir` has) only what is read
here is declared: buffers, one attribute, the stream and errors. XLA calls on the thread that
called the program or on one of its own and, on a GPU, with the device set; the function queues its
work on the stream that it is given.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import NamedTuple

_METADATA, _INTERNAL = 1, 13
"""XLA_FFI_Extension_Metadata and XLA_FFI_Error_Code_INTERNAL."""
TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
    9: "uint64", 10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "uint16",
    18: "complex128",
}  # fmt: skip
"""NumPy's types by XLA_FFI_DataType; 16 is bf16, whose bits are handed on."""


class Buffer(NamedTuple):
    """An operand or a result: its address, its XLA_FFI_DataType and its shape, as int64."""

    address: int
    kind: int
    dims: bytes


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


class _Buffer(Structure):
    _fields_ = (*_HEAD,
        ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", c_void_p),
    )  # fmt: skip


class _Buffers(Structure):
    _fields_ = (*_HEAD, ("count", c_int64), ("types", c_void_p), ("buffers", c_void_p))


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", c_void_p))


class _Attributes(Structure):
    _fields_ = (*_HEAD,
        ("count", c_int64), ("types", c_void_p), ("names", c_void_p), ("scalars", c_void_p),
    )  # fmt: skip


class _Error(Structure):
    _fields_ = (*_HEAD, ("message", c_char_p), ("code", c_int))


class _StreamOf(Structure):
    _fields_ = (*_HEAD, ("context", c_void_p), ("stream", c_void_p))


class _Api(Structure):
    _fields_ = (*_HEAD,
        ("version", _Version), ("internal", c_void_p), ("make_error", c_void_p),
        ("get_message", c_void_p), ("destroy", c_void_p), ("register", c_void_p),
        ("get_stream", c_void_p),
    )  # fmt: skip


class _CallFrame(Structure):
    _fields_ = (*_HEAD,
        ("api", c_void_p), ("context", c_void_p), ("stage", c_int), ("operands", _Buffers),
        ("results", _Buffers), ("attributes", _Attributes),
    )  # fmt: skip


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
        # Structures at addresses: pointers of ctypes make an object more at each step.
        call = _CallFrame.from_address(at)
        if call.extension:
            extension = _MetadataExtension.from_address(call.extension)
            if extension.base.type == _METADATA:
                found = extension.metadata.contents.version
                found.major, found.minor = version
                extension.metadata.contents.traits = traits
                return None
        try:
            (scalar,) = _addresses(1, call.attributes.scalars)
            number = c_int64.from_address(_Scalar.from_address(scalar).value).value
            given = call.operands
            operands = [_buffer(x) for x in _addresses(given.count, given.buffers)]
            (result,) = _addresses(1, call.results.buffers)
            function(number, operands, _buffer(result), _stream(call) if on_gpu else None)
        except Exception as error:  # what else would cross into C++ is lost
            made = _made_error(call, f"{type(error).__name__}: {error}")
            error.__traceback__ = error.__context__ = error.__cause__ = None  # they hold operands
            return made
        return None

    return _HANDLER(handle)


class _Thread(threading.local):
    """Whether Python keeps its state of a thread between calls."""

    is_kept = False


_THREAD = _Thread()


def _keep_thread() -> None:
    """Let Python keep its state of this thread until the process ends.

    It makes one for each call from a thread that is not its own, and drops it after the call: that
    takes longer than the call, and what CuPy keeps by threads goes with it.
    """
    ctypes.pythonapi.PyGILState_Ensure()  # never released
    _THREAD.is_kept = True


def _version(headers: str) -> tuple[int, int]:
    """Return the interface's version. Raises OSError without headers, ValueError in others."""
    text = (Path(headers) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{name} (\d+)", text) for name in ("MAJOR", "MINOR")]
    if found[0] is None or found[1] is None:
        raise ValueError(f"no version of XLA's foreign functions in {headers}")
    return int(found[0][1]), int(found[1][1])


def _addresses(count: int, at: int) -> Sequence[int]:
    """Return the pointers of an array in memory."""
    return (c_size_t * count).from_address(at)[:] if count else ()


def _buffer(at: int) -> Buffer:
    found = _Buffer.from_address(at)
    dims = ctypes.string_at(found.dims, 8 * found.rank) if found.rank else b""
    return Buffer(found.data or 0, found.dtype, dims)


def _stream(call: _CallFrame) -> int:
    asked = _StreamOf(_SIZE_OF_STREAM, None, call.context, None)
    get_stream = _get_stream(_Api.from_address(call.api).get_stream)
    if get_stream(ctypes.byref(asked)):
        raise RuntimeError("XLA has no stream for this call")
    return asked.stream or 0


_SIZE_OF_STREAM = ctypes.sizeof(_StreamOf)


@cache
def _get_stream(address: int) -> Callable[..., int | None]:
    return _GET_STREAM(address)


def _made_error(call: _CallFrame, message: str) -> int | None:
    error = _Error(ctypes.sizeof(_Error), None, message.encode(), _INTERNAL)
    make_error = _MAKE_ERROR(_Api.from_address(call.api).make_error)
    made: int | None = make_error(ctypes.byref(error))
    return made
