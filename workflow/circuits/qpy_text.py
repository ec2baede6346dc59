"""Circuits in Qiskit's QPY as OpenQASM 2, which is then counted and read as any other text."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from workflow.circuits import qpy_reader
from workflow.circuits.qasm_text import QasmError
from workflow.storage.memory import in_words

MAGIC = b"QISKIT"
"""The first bytes of a QPY file; the next one is the version of the format."""
OLDEST_VERSION = 13
"""That of Qiskit 1.3. Expressions in older files are text for Python's eval or a symengine archive,
by which a file may run code (CVE-2025-2000); they are not read, whatever Qiskit is here."""
_LONGEST_S = 300
"""Wall-clock seconds on a machine under load; `qpy_reader` limits processor time itself."""


@lru_cache(maxsize=4)
def as_version_2(content: bytes, most_bytes: int) -> str:
    """The circuit of a QPY file in OpenQASM 2, up to a global phase.

    Angles within 1e-12 of a simple fraction of pi become that, as Qiskit writes them.

    Raises QasmError for an older format, for several circuits or none, and for a circuit that has
    unbound parameters or classical control, is damaged, or takes more memory, time or text than is
    allowed.
    """
    version = content[len(MAGIC)] if len(content) > len(MAGIC) else 0
    if version < OLDEST_VERSION:
        raise QasmError(
            f"it is QPY of version {version}; version {OLDEST_VERSION} (Qiskit 1.3) or newer is "
            "read, because files of older ones may hold code that runs; write the circuit by "
            "qiskit.qasm2.dump"
        )
    with tempfile.TemporaryFile() as said:
        command = [sys.executable, "-P", str(Path(qpy_reader.__file__)), str(most_bytes)]
        # Threads of BLAS, of which nothing here needs one, would count against its memory.
        environ = os.environ | {"OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, input=content, stdout=said, stderr=subprocess.PIPE, check=False,
                timeout=_LONGEST_S, env=environ,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise QasmError(f"it is QPY that Qiskit did not read in {_LONGEST_S} s") from None
        if done.returncode == qpy_reader.FAILED:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise QasmError(f"it is QPY that cannot be read as a circuit: {''.join(last)}")
        if done.returncode:
            raise QasmError(
                f"it is QPY that Qiskit cannot read within {in_words(qpy_reader.MEMORY_BYTES)} of "
                f"memory, {qpy_reader.CPU_SECONDS} s and {in_words(most_bytes)} of text"
            )
        said.seek(0)
        return said.read().decode()
