// SPDX-License-Identifier: Apache-2.0
// The line with the mistake carries a comment "planted: name"; the test looks it up. Offsets come as arguments, so that
// the compiler cannot see the mistake.
#include "kernels/simt/simt.h"
#include "tests/kernels/simt/planted/harness.h"
#include "tests/kernels/simt/planted/planted.h"

namespace gradring::simt_test {
namespace {

__attribute__((noinline)) __device__ void put(float* values, unsigned i) {
  values[i] = 1.0f;  // planted: past_simt_shared past_simt_shared_in_template past_local_array
}

__global__ void past_shared_array(float* y, unsigned offset) {
  __shared__ float values[32];
  values[threadIdx.x + offset] = 1.0f;  // planted: past_shared_array
  y[threadIdx.x] = values[threadIdx.x];
}

__global__ void past_shared_row(float* y, unsigned offset) {
  __shared__ float values[4][8];
  values[threadIdx.x / 8][threadIdx.x % 8 + offset] = 1.0f;  // planted: past_shared_row
  y[threadIdx.x] = values[0][0];
}

__global__ void past_simt_shared(float* y, unsigned offset) {
  SIMT_SHARED(float[32], values);
  put(values, threadIdx.x + offset);
  y[threadIdx.x] = values[threadIdx.x];
}

template <unsigned Size>
__global__ void past_simt_shared_in_template(float* y, unsigned offset) {
  SIMT_SHARED(float[Size], values);
  put(values, threadIdx.x + offset);
  y[threadIdx.x] = values[threadIdx.x];
}

__global__ void past_dynamic_shared(float* y, unsigned offset) {
  SIMT_DYNAMIC_SHARED(float, values);
  values[threadIdx.x + offset] = 1.0f;  // planted: past_dynamic_shared
  y[threadIdx.x] = values[threadIdx.x];
}

__global__ void past_global(float* y, unsigned offset) {
  y[threadIdx.x + offset] = 1.0f;  // planted: past_global past_global_flat
}

__global__ void past_local_array(float* y, unsigned offset) {
  float values[4] = {};
  put(values, offset * 4);
  y[0] = values[0];
}

__global__ void misaligned_pointer(float* y, unsigned offset) {
  auto* quad = reinterpret_cast<float4*>(y + offset);
  *quad = make_float4(1, 2, 3, 4);  // planted: misaligned_pointer
}

__global__ void misaligned_store_as(float* y, unsigned offset) {
  const float4 quad = make_float4(1, 2, 3, 4);
  simt::store_as<float4>(y + offset, quad);  // planted: misaligned_store_as
}

__global__ void overflowing_index(float* y, int huge) {
  const int index = huge + static_cast<int>(threadIdx.x);  // planted: overflowing_index
  y[threadIdx.x] = static_cast<float>(index);
}

template <auto Kernel>
bool run(kernels::Device& device, simt::Config config, unsigned offset) {
  Bench bench(device);
  simt::launch<Kernel>(bench.stream(), config, bench.y(), offset);
  return true;
}

template <auto Kernel, unsigned Threads, unsigned Offset, std::size_t SharedBytes = 0>
bool run_block(kernels::Device& device) {
  return run<Kernel>(device, {.block = Threads, .shared_bytes = SharedBytes}, Offset);
}

bool run_past_global_flat(kernels::Device& device) {
  Bench bench(device);
  simt::launch_flat<past_global>(bench.stream(), {.block = 256}, bench.y(), 1u);
  return true;
}

bool run_overflowing_index(kernels::Device& device) {
  Bench bench(device);
  simt::launch<overflowing_index>(bench.stream(), {.block = 32}, bench.y(), 0x7ffffff0);
  return true;
}

const Planted kAccesses[] = {
    {"past_shared_array", &run_block<past_shared_array, 32, 1>},
    {"past_shared_row", &run_block<past_shared_row, 32, 1>},
    {"past_simt_shared", &run_block<past_simt_shared, 32, 1>},
    {"past_simt_shared_in_template", &run_block<past_simt_shared_in_template<32>, 32, 1>},
    {"past_dynamic_shared", &run_block<past_dynamic_shared, 32, 1, 128>},
    {"past_global", &run_block<past_global, 256, 1>},
    {"past_global_flat", &run_past_global_flat},
    {"past_local_array", &run_block<past_local_array, 1, 1>},
    {"misaligned_pointer", &run_block<misaligned_pointer, 1, 1>},
    {"misaligned_store_as", &run_block<misaligned_store_as, 1, 1>},
    {"overflowing_index", &run_overflowing_index},
    {"inside_simt_shared", &run_block<past_simt_shared, 32, 0>},
    {"inside_dynamic_shared", &run_block<past_dynamic_shared, 32, 0, 128>},
    {"inside_global", &run_block<past_global, 256, 0>},
    {"aligned_store_as", &run_block<misaligned_store_as, 1, 4>},
};

}  // namespace

std::span<const Planted> planted_accesses() { return kAccesses; }

}  // namespace gradring::simt_test
