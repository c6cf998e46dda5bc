// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"
#include "tests/kernels/simulated_gpu/cudart/registered_kernels.h"

namespace gradring::tests {

inline std::string module_for(const std::string& target, const std::string& kernels) {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n" + kernels;
}

/// Stores its parameters: to[0] = small, to[2..3] = wide, to[4] = the last word of `block`.
inline constexpr const char* kStore = R"(
.visible .entry store(.param .u64 to, .param .u8 small, .param .u64 wide, .param .align 4 .b8 block[12]) {
  .reg .u64 %rd<5>;
  .reg .u32 %r<4>;
  .reg .u16 %rs<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u8 %rs1, [small];
  ld.param.u64 %rd2, [wide];
  ld.param.u32 %r1, [block+8];
  cvta.to.global.u64 %rd3, %rd1;
  cvt.u32.u16 %r2, %rs1;
  st.global.u32 [%rd3], %r2;
  st.global.u64 [%rd3+8], %rd2;
  st.global.u32 [%rd3+16], %r1;
  ret;
}
)";

/// to[0] = from[0] + 1
inline constexpr const char* kAddOne = R"(
.visible .entry add_one(.param .u64 to, .param .u64 from) {
  .reg .u64 %rd<5>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  ld.global.u32 %r1, [%rd4];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

/// Thread i reads data[40 * i], and writes data[60].
inline constexpr const char* kReadApart = R"(
.visible .entry read_apart(.param .u64 data) {
  .reg .u64 %rd<5>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 160;
  add.u64 %rd4, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  st.global.u32 [%rd2+240], %r2;
  ret;
}
)";

/// Nothing, with 16 KB of static shared memory, in blocks of 64 threads at most.
inline constexpr const char* kBounded = R"(
.visible .entry bounded() .maxntid 64, 1, 1 {
  .shared .align 16 .b8 static_shared[16384];
  ret;
}
)";

/// A stream, and kernels to launch on it.
class Kernels : public Cudart {
 protected:
  void SetUp() override {
    Cudart::SetUp();
    static const auto kernels = [] {
      RegisteredKernels made({{90, module_for("sm_90", std::string(kStore) + kAddOne + kReadApart + kBounded)}});
      return std::array{made.kernel("store"), made.kernel("add_one"), made.kernel("bounded"),
                        made.kernel("read_apart")};
    }();
    store_ = kernels[0];
    add_one_ = kernels[1];
    bounded_ = kernels[2];
    read_apart_ = kernels[3];
    stream_ = make_stream();
  }

  static cudaLaunchConfig_t config(cudaStream_t stream, dim3 grid = {1}, dim3 block = {1}, std::size_t shared = 0) {
    cudaLaunchConfig_t made{};
    made.gridDim = grid;
    made.blockDim = block;
    made.dynamicSmemBytes = shared;
    made.stream = stream;
    return made;
  }
  cudaError_t launch(const void* kernel, const cudaLaunchConfig_t& made, std::vector<void*> arguments = {}) {
    return cudaLaunchKernelExC(&made, kernel, arguments.data());
  }
  cudaError_t launch_add_one(std::uint32_t* to, const std::uint32_t* from) { return launch_add_one(to, from, stream_); }
  cudaError_t launch_add_one(std::uint32_t* to, const std::uint32_t* from, cudaStream_t stream) {
    return launch(add_one_, config(stream), {static_cast<void*>(&to), static_cast<void*>(&from)});
  }
  cudaError_t launch_bounded(dim3 grid, dim3 block, std::size_t shared) {
    return launch(bounded_, config(stream_, grid, block, shared));
  }

  const void* store_ = nullptr;
  const void* add_one_ = nullptr;
  const void* bounded_ = nullptr;
  const void* read_apart_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace gradring::tests
