// Programmatic dependent launch (sm_90): a kernel of a graph begins while the one before it ends
// (argand/runtime/graph.py). Its prologue then costs no time. Where the kernels are launched one by
// one, both instructions do nothing.
#pragma once
#include "types.cuh"

// Lets the next kernel's blocks begin where multiprocessors have room for them. They may read what
// this kernel writes only behind `wait_for_kernel_before`, so this comes first of all.
__device__ __forceinline__ void let_next_kernel_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the kernel before has ended and its writes are visible.
__device__ __forceinline__ void wait_for_kernel_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
