"""Circuits that Qiskit reads, in this process: one of its own imports Qiskit for each."""

from __future__ import annotations

import os
import warnings
from subprocess import CompletedProcess

from workflow.circuits import qiskit_reader, qiskit_text

BY_A_PROCESS = qiskit_text._read


def read_here(
    content: bytes, form: str, most_bytes: int, said: int
) -> CompletedProcess[bytes] | None:
    """Read a circuit as `BY_A_PROCESS` does, without its limits."""
    try:
        with warnings.catch_warnings(action="ignore"):  # a process says them and goes on
            text = qiskit_reader.as_text(content, form)
    except BaseException as error:  # a panic in Rust is no Exception
        return CompletedProcess(
            [], qiskit_reader.FAILED, None, qiskit_reader.reason(error).encode()
        )
    os.write(said, text.encode())
    return CompletedProcess([], 0)
