"""A stand-in for the driver of a machine with three GPUs.

A process that imports it as ``sitecustomize`` sees them; what they would compute the CPU does.
"""

MACHINE = """
import os, time
from argand.device import cpu
from workflow.jobs import gpu_devices, job_device

def resolve(name):
    if name == "cuda":
        assert len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")) == 1
        time.sleep(1.5)  # so that jobs that may run together do
    return cpu()

gpu_devices._has_cupy = lambda: True
gpu_devices.machine_gpus = lambda: [gpu_devices.Gpu(i, f"GPU-{i}000", "fake") for i in range(3)]
job_device.resolve = resolve
"""
