// Programmatic dependent launch (sm_90): a kernel takes its multiprocessors while the one before it
// ends, in a graph as on a stream (argand/runtime/compile/dependent_launch.py). In a kernel that is
// launched otherwise both instructions do nothing.
#pragma once

// Lets the next kernel's blocks begin where multiprocessors have room for them, before this one has
// ended. It comes after `griddepcontrol_wait`, so that the next kernel too sees what was written
// before this one began.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernel before this one has ended and its writes are visible.
__device__ __forceinline__ void griddepcontrol_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
