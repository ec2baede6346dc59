"""From Qiskit's QPY on stdin to OpenQASM 2 on stdout: a process of its own, within limits.

A file may say that it holds 2^32 qubits, or a gate of the library that takes hours to build, and
nothing tells so before Qiskit has done it. It does it here, with so much memory, time and output.
"""

from __future__ import annotations

import io
import re
import resource
import sys

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 30
FAILED = 3
"""Exit status where stderr ends with a line that says what Qiskit could not do."""


def main(most_bytes: int) -> int:
    """Write the one circuit of a file; its measurements and barriers too, its global phase not."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from qiskit import QuantumCircuit, qasm2, qpy

    try:
        programs = qpy.load(io.BytesIO(sys.stdin.buffer.read()))
        if len(programs) != 1 or not isinstance(programs[0], QuantumCircuit):
            raise ValueError(f"it must hold one circuit, it holds {len(programs)} programs")
        sys.stdout.write(qasm2.dumps(programs[0]))
        sys.stdout.flush()
    except BaseException as error:  # a panic in Rust is no Exception
        # Colours and frames that the reader draws around what it says are not part of that.
        said = re.sub("\x1b\\[[0-9;]*m|[\u2500-\u257f]", "", str(next(iter(error.args), "")))
        sys.stderr.write(f"\n{' '.join(said.split()) or type(error).__name__:.200}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
