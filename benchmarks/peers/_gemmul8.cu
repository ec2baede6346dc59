// C functions over GEMMul8's templates, for ctypes. Column-major, as cuBLAS.
//
//   nvcc -O3 -std=c++20 -shared -Xcompiler -fPIC -diag-suppress 177 -arch=sm_90 \
//       -I GEMMul8 -o libgemmul8.so benchmarks/peers/_gemmul8.cu -lcublas -lcublasLt
//
// with -I naming the folder of GEMMul8's `include` and `src`.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
// Its timers wait for the stream twice a modulus; without them its calls are queued as ours are.
#define cudaStreamSynchronize(stream) cudaSuccess
#include "src/gemmul8.cu"
#undef cudaStreamSynchronize

using gemmul8::Backend;

extern "C" size_t gemmul8_workspace(size_t m, size_t n, size_t k, unsigned moduli) {
    return gemmul8::workSize<true, Backend::INT8>(m, n, k, moduli);
}

// C = A B in fast mode; A (m, k), B (k, n), C (m, n) without gaps between columns.
template <typename T>
static void multiply(cublasHandle_t handle, size_t m, size_t n, size_t k, const T* a, const T* b,
                     T* c, unsigned moduli, void* workspace) {
    const T one{1, 0}, zero{0, 0};
    gemmul8::gemm<T, Backend::INT8>(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, m, b, k,
                                    &zero, c, m, moduli, true, workspace);
}

extern "C" void gemmul8_complex64(cublasHandle_t handle, size_t m, size_t n, size_t k,
                                  const cuFloatComplex* a, const cuFloatComplex* b,
                                  cuFloatComplex* c, unsigned moduli, void* workspace) {
    multiply(handle, m, n, k, a, b, c, moduli, workspace);
}

extern "C" void gemmul8_complex128(cublasHandle_t handle, size_t m, size_t n, size_t k,
                                   const cuDoubleComplex* a, const cuDoubleComplex* b,
                                   cuDoubleComplex* c, unsigned moduli, void* workspace) {
    multiply(handle, m, n, k, a, b, c, moduli, workspace);
}
