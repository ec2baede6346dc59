"""Snakemake, imported once: each run, and each job of it, is a fork of a process that has it.

The imports take longer than most of what tests have Snakemake do. Runs through Slurm are processes
of their own, as their jobs are, by `snakemake_command`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fork_client import ask

ROOT = Path(__file__).resolve().parents[2]
FORKS = Path(__file__).with_name("fork_server.py")
_SERVER: list[str] = []
"""The socket of the process that forks, once there is one."""


def snakemake_command(*flags: str) -> list[str]:
    """Snakemake as a user starts it."""
    return [sys.executable, "-m", "snakemake", *flags]


def run_snakemake(
    flags: Sequence[str], folder: Path, environ: Mapping[str, str] = os.environ, code: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a folder to its end: what it said, and its status.

    ``code`` is the repository that the flags name: the code of a copy is imported by each run.
    """
    return _forked("snakemake", flags, folder, environ, code)


def run_beside_snakemake(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script, which may import Snakemake, in its folder to its end."""
    return _forked("script", [str(script), *words], script.parent, os.environ, ROOT)


def _forked(
    what: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str], code: Path
) -> subprocess.CompletedProcess[str]:
    request = {
        "run": what, "argv": list(argv), "folder": str(folder), "environ": dict(environ),
        "code": str(code),
    }  # fmt: skip
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = ask(_server(), request, out.fileno(), err.fileno())
        said = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(argv, status, *said)


def _server() -> str:
    if not _SERVER:
        folder = tempfile.mkdtemp(prefix="argand-forks-")
        path = f"{folder}/socket"
        # It does not know what replaces parts of this repository in a run.
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        server = subprocess.Popen(
            [sys.executable, str(FORKS), path, str(ROOT)],
            env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline() == "listens\n"
        atexit.register(_end, server, folder)
        _SERVER.append(path)
    return _SERVER[0]


def _end(server: subprocess.Popen[str], folder: str) -> None:
    with server:
        assert server.stdin is not None
        server.stdin.close()
    shutil.rmtree(folder)
