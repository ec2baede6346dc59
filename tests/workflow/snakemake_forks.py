"""Snakemake, imported once: each run is a fork of a process that has imported it.

The import takes longer than most of what tests have Snakemake do. All of this repository, and what
``sitecustomize`` of a run does, is imported by the fork, by the run's own ``PYTHONPATH``. Runs that
are killed or go on beside the test are processes of their own, by `snakemake_command`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_SERVER: list[subprocess.Popen[str]] = []
"""The process that this one has fork; none before the first run."""


def snakemake_command(*flags: str) -> list[str]:
    """Snakemake as a user starts it."""
    return [sys.executable, "-m", "snakemake", *flags]


def run_snakemake(
    flags: Sequence[str], folder: Path, environ: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a folder to its end: what it said, and its status."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as said:
        files = {name: f"{said}/{name}" for name in ("out", "err")}
        request = {"flags": list(flags), "folder": str(folder), "environ": dict(environ), **files}
        print(json.dumps(request), file=server.stdin, flush=True)
        answer = server.stdout.readline()
        assert answer, "the process that forks Snakemake has ended"
        out, err = (Path(path).read_text() for path in files.values())
    return subprocess.CompletedProcess(snakemake_command(*flags), int(answer), out, err)


def _server() -> subprocess.Popen[str]:
    if not _SERVER:
        # It knows neither this repository nor what replaces parts of it in a run.
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        _SERVER.append(
            subprocess.Popen(
                [sys.executable, __file__], env=environ, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
        )  # fmt: skip
        atexit.register(_end, *_SERVER)
    return _SERVER[0]


def _end(server: subprocess.Popen[str]) -> None:
    with server:
        assert server.stdin is not None
        server.stdin.close()


def _serve() -> None:
    """Fork for each request, and answer with the fork's status when it has ended."""
    installed = ("snakemake.cli", "snakemake.report.html_reporter", "nbformat", "smart_open",
                 "h5py", "numpy", "pydantic", "yaml")  # fmt: skip
    for name in installed:
        importlib.import_module(name)
    own = str(Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != own]
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            _become(json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(run: Mapping[str, Any]) -> None:
    """Let this process be the one that ``snakemake_command`` would start."""
    os.setsid()
    for number, path, how in ((0, os.devnull, os.O_RDONLY), (1, run["out"], None),
                              (2, run["err"], None)):  # fmt: skip
        file = os.open(path, os.O_WRONLY | os.O_CREAT if how is None else how)
        os.dup2(file, number)
        os.close(file)
    os.chdir(run["folder"])
    os.environ.clear()
    os.environ.update(run["environ"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX")
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [run["folder"], *filter(None, given)]
    sys.orig_argv = snakemake_command(*run["flags"])
    sys.argv = ["snakemake", *run["flags"]]
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")
    from snakemake.cli import main

    main()


if __name__ == "__main__":
    _serve()
