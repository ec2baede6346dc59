"""Forks itself for what would else be a new Python: what is slow to import, it has imported.

``python fork_server.py SOCKET REPOSITORY`` listens until standard input ends. A request names what
to become, a folder, an environment and the repository, of which another one is imported anew, and
brings standard output and error; the answer is the status of the fork when it has ended.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shlex
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TAKES = 1 << 18
"""Bytes of a request at most."""
INSTALLED = ("snakemake.cli", "snakemake.profiles", "snakemake.storage",
             "snakemake.report.html_reporter", "nbformat", "smart_open", "argparse_dataclass",
             "h5py", "h5py._hl.dims", "hdf5plugin", "numpy", "scipy.fft", "scipy.linalg",
             "pydantic", "yaml", "platformdirs", "matplotlib.figure", "matplotlib.style",
             "matplotlib.backends.backend_svg")  # fmt: skip


def preload(code: str) -> None:
    """Import what is installed, and what the scripts in the repository ``code`` import of it."""
    for name in INSTALLED:
        importlib.import_module(name)
    importlib.import_module("snakemake.cli").get_argument_parser()  # finds all plugins
    before = sys.path[:]
    sys.path[:0] = [code, f"{code}/kernels"]
    workflow = Path(code, "workflow")
    names = [
        node.module
        for path in (*sorted(workflow.glob("scripts/*.py")), workflow / "outcome" / "unfinished.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    for name in dict.fromkeys([*filter(None, names), "workflow.preflight.check"]):
        importlib.import_module(name)
    # Each is imported by the first job that asks for it, and jobs are many.
    list(importlib.import_module("workflow.workloads").KINDS)
    importlib.import_module("benchmarks.peers").study_names()
    digest = importlib.import_module("workflow.preflight.code_digest").code_digest
    for script in workflow.glob("scripts/*.py"):
        digest(script.stem)  # has read, and keeps, the text of each module
    sys.path[:] = before


def serve(path: str, code: str) -> None:
    """Fork for each request; ``code`` is the repository that runs have imported."""
    del sys.path[0]  # the folder of this file, which no run has
    preload(code)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen()
    gc.freeze()  # so that forks share what is there
    print("listens", flush=True)
    ready = selectors.DefaultSelector()
    for source in (sys.stdin, listening):
        ready.register(source, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listening:
                _fork(listening, ready, path, code)
            else:
                pid, asking = key.data
                _, status = os.waitpid(pid, 0)
                ready.unregister(key.fd)
                os.close(key.fd)
                with asking, contextlib.suppress(OSError):  # who asked may have been killed
                    asking.send(str(os.waitstatus_to_exitcode(status)).encode())


def _fork(listening: socket.socket, ready: selectors.BaseSelector, path: str, code: str) -> None:
    """Take a request and fork for it."""
    asking = listening.accept()[0]
    message, files, _, _ = socket.recv_fds(asking, TAKES, 2)
    if not message:
        asking.close()
        return
    pid = os.fork()
    if pid:
        ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, asking))
        for file in files:
            os.close(file)
        return
    for source in (asking, listening, ready):
        source.close()
    status: object = 0
    try:
        request = json.loads(message)
        if request["code"] != code:
            _forget_repository()
        _become(request, files, path)
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        traceback.print_exc()
        status = 1
    _leave(status)


def _forget_repository() -> None:
    """Leave nothing of what `preload` imported of the repository."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("argand", "benchmarks", "workflow"):
            del sys.modules[name]


def _leave(status: object) -> None:
    """End as a Python does, but leave its modules to the system: to take them down takes long."""
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(status or 0))  # type: ignore[call-overload]


def _become(request: Mapping[str, Any], files: Sequence[int], path: str) -> None:
    """Let this process be the Python that was asked for."""
    os.setsid()
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX")
    argv, is_script = request["argv"], request["run"] == "script"
    rule = argv[0].split(".")[-2] if is_script else "snakemake"
    Path("/proc/self/comm").write_text(rule)  # as ``ps`` and `rule_jobs` name this process
    first = str(Path(argv[0]).absolute().parent) if is_script else request["folder"]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [first, *filter(None, given)]
    sys.argv = argv if is_script else ["snakemake", *argv]
    sys.orig_argv = [sys.executable, *(argv if is_script else ("-m", *sys.argv))]
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")
    if is_script:
        runpy.run_path(argv[0], run_name="__main__")
    else:
        _snakemake(path, request["code"])


def _snakemake(path: str, code: str) -> None:
    """Run Snakemake's command line; its jobs are forks too."""
    from snakemake import cli, script

    client = Path(__file__).with_name("fork_client.py")
    command = shlex.join([sys.executable, "-I", "-S", str(client), path, code])

    def execute_script(self: Any, fname: str, edit: bool = False) -> None:
        self._execute_cmd(f"{command} {{fname:q}}", fname=fname, is_python_script=True)

    script.PythonScript.execute_script = execute_script
    cli.main()


if __name__ == "__main__":
    serve(*sys.argv[1:])
