"""A Slurm of two nodes on this machine, for tests: its own daemons, keys, ports and folder.

Each node has two cores and two GPUs, which are character devices that lead nowhere, or the first
node has the machine's own: Slurm hands them out alike, and sets CUDA_VISIBLE_DEVICES for a job, as
the node counts its devices, so that two nodes cannot have one real GPU each. Nothing outside the
folder is written, and a Slurm or munge of the machine's own is not touched. It takes root:
slurmd does, and so does making the devices.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

NODES = ("n1", "n2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scancel")

CONFIG = """
ClusterName=mini
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core,CR_LLN
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
ReturnToService=2
MinJobAge=300
KillWait=2
InactiveLimit=0
SlurmctldTimeout=60
SlurmdTimeout=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
GresTypes=gpu
NodeName=n1 Port={ports[1]} {nodes[0]}
NodeName=n2 Port={ports[2]} {nodes[1]}
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=60 OverSubscribe=NO State=UP
"""
NODE = (
    "NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2 SocketsPerBoard=1 CoresPerSocket=2 "
    "ThreadsPerCore=1 RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN"
)
GRES = "NodeName={node} Name=gpu File={file}\n"
SRUN = """#!/bin/sh
# The job step takes SLURM_CONF from the environment of the srun that it starts: put it back.
SLURM_CONF={folder}/slurm.conf exec {srun} "$@"
"""


def missing() -> str:
    """Why there can be no Slurm here; empty where there can."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    return f"Slurm is not installed: no {', '.join(absent)}" if absent else ""


def wait_for(what: str, condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until a condition holds; an AssertionError with ``what`` where it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


class MiniSlurm:
    """The cluster; `running` starts and ends it.

    Args:
        folder: an empty one, for all of its files.
        gpus: device files, for the first node, in place of two that lead nowhere for each.
    """

    def __init__(self, folder: Path, gpus: Sequence[str] = ()) -> None:
        self.folder, self._gpus = folder, gpus
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._configure()

    def _configure(self) -> None:
        host, folder = socket.gethostname().partition(".")[0], self.folder
        for name in ("state", "bin", *(f"spool/{node}" for node in NODES)):
            (folder / name).mkdir(parents=True)
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        counts = (len(self._gpus), 0) if self._gpus else (2, 2)
        if not self._gpus:
            for index in (0, 1):
                os.mknod(folder / f"nvidia{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        nodes = [NODE.format(host=host, gpus=count) for count in counts]
        text = CONFIG.format(host=host, folder=folder, ports=_free_ports(3), nodes=nodes)
        (folder / "slurm.conf").write_text(text.lstrip())
        files = ",".join(self._gpus) or f"{folder}/nvidia[0-1]"
        lines = [
            GRES.format(node=node, file=files)
            for node, count in zip(NODES, counts, strict=True)
            if count
        ]
        (folder / "gres.conf").write_text("".join(lines))
        # Nothing here uses control groups, but slurmd ends where the plugin for their version 2 has
        # no systemd to talk to. Before 23.11 it takes some plugin: that for version 1 asks nobody.
        plugin = "disabled" if _version() >= (23, 11) else "cgroup/v1"
        (folder / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
        srun = folder / "bin" / "srun"
        srun.write_text(SRUN.format(folder=folder, srun=shutil.which("srun")))
        srun.chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a user of the cluster, besides this process's own."""
        return {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Start all daemons and wait until the nodes are idle."""
        folder = self.folder
        self._start(
            "munged", "--foreground", "--force", f"--key-file={folder}/munge.key",
            f"--socket={folder}/munge.sock", f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed",
        )  # fmt: skip
        wait_for("munge answers", (folder / "munge.sock").exists)
        self._start("slurmctld", "-D", "-c")
        for node in NODES:
            self.start_node(node)
        wait_for("both nodes are idle", lambda: self.idle() == set(NODES))

    def start_node(self, node: str) -> None:
        """Start a node's daemon."""
        self._start("slurmd", "-D", "-c", "-N", node, name=node)

    def _start(self, program: str, *flags: str, name: str = "") -> None:
        with (self.folder / f"{name or program}.out").open("ab") as log:
            self._daemons[name or program] = subprocess.Popen(
                [program, *flags],
                env=self.environ,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def kill_daemon(self, node: str) -> None:
        """A node's daemon ends by SIGKILL; its jobs go on, and Slurm cannot reach them."""
        daemon = self._daemons.pop(node)
        daemon.kill()
        daemon.wait()

    def kill_node(self, node: str) -> None:
        """A node is gone: its daemon and its jobs, with nobody left who reports their end."""
        self.kill_daemon(node)
        jobs = self._processes_on(node)
        stepds = {one for job in jobs for one in job.parents() if "slurmstepd" in one.name()}
        for process in (*stepds, *jobs):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _processes_on(self, node: str) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                environ = process.environ()
                if (environ.get("SLURM_CONF"), environ.get("SLURMD_NODENAME")) == (
                    self.environ["SLURM_CONF"],
                    node,
                ):
                    found.append(process)
        return found

    def restore(self) -> None:
        """End all jobs, start the daemons that were killed, and wait until the nodes are idle."""
        self.call("scancel", "--user=root")
        for node in set(NODES) - set(self._daemons):
            self.start_node(node)
        wait_for("both nodes are idle", lambda: self.idle() == set(NODES), 120)

    def call(self, *command: str) -> str:
        """The output of one of Slurm's commands."""
        done = subprocess.run(
            command, env=self.environ, capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def idle(self) -> set[str]:
        """The nodes that are up and without a job."""
        done = subprocess.run(
            ["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"],
            env=self.environ, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        return set(done.stdout.split())

    def jobs(self, state: str = "R,PD,CG", comment: str = "") -> list[str]:
        """The numbers of jobs in some states whose comment (rule and wildcards) holds a text."""
        lines = self.call("squeue", "-h", "-t", state, "-o", "%A %k").splitlines()
        return [line.split()[0] for line in lines if comment in line]

    def node_of(self, job: str) -> str:
        """The node that a job runs on."""
        return self.call("squeue", "-h", "-j", job, "-o", "%N").strip()

    def stop(self) -> None:
        """End all jobs, then the daemons."""
        self.call("scancel", "--user=root")
        with contextlib.suppress(AssertionError):
            wait_for("all jobs have ended", lambda: not self.jobs("R,CG"), 15)
        for daemon in reversed(self._daemons.values()):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@contextlib.contextmanager
def running(folder: Path, gpus: Sequence[str] = ()) -> Iterator[MiniSlurm]:
    """A cluster (`MiniSlurm`) for as long as the block lasts."""
    cluster = MiniSlurm(folder, gpus)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _version() -> tuple[int, ...]:
    done = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()[-1].split(".")[:2]))
