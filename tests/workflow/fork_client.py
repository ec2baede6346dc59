"""Asks a `fork_server` for a process, and as a program stays in its place until it has ended.

A program for each job of Snakemake's, so it imports little: ``python -I -S fork_client.py SOCKET
REPOSITORY SCRIPT`` does what ``python SCRIPT`` would, with the code of the repository.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys


def ask(path: str, request: dict[str, object], out: int = 1, err: int = 2) -> int:
    """Return the status of a process that the server at a path forks, with these output files."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        files = array.array("i", (out, err))
        sent = json.dumps(request).encode()
        server.sendmsg([sent], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        answer = server.recv(16)
    assert answer, "the process that forks has ended"
    return int(answer)


def run_script(path: str, code: str, *argv: str) -> None:
    """End as the script does, by its status or its signal."""
    folder, environ = os.getcwd(), {**os.environ}  # noqa: PTH109
    request = {"run": "script", "argv": argv, "folder": folder, "environ": environ, "code": code}
    status = ask(path, request)
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    run_script(*sys.argv[1:])
