// Programmatic dependent launch (sm_90): a kernel takes its multiprocessors while the one before it
// ends, in a graph as on a stream (argand/runtime/dependent_launch.py). Where the driver keeps the
// order, both instructions do nothing.
#pragma once

// Lets the next kernel's blocks begin where multiprocessors have room for them, before this one has
// ended. It comes after `wait_for_kernel_before`: so the next kernel too sees what was written
// before this one began.
__device__ __forceinline__ void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernel before has ended and its writes are visible.
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
