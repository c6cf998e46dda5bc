// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/simulated_gpu/machine/counters.h"
#include "kernels/simulated_gpu/memory/access_log.h"
#include "kernels/simulated_gpu/memory/global_memory.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

struct Extent {
  unsigned x = 1, y = 1, z = 1;

  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// The place of a linear index, x first.
constexpr Extent extent_at(const Extent& whole, std::uint64_t index) {
  return {static_cast<unsigned>(index % whole.x), static_cast<unsigned>(index / whole.x % whole.y),
          static_cast<unsigned>(index / whole.x / whole.y)};
}

/// A kernel, translated for execution: operands are slots in a warp's registers, and each instruction is a function.
/// Translated once, executed by any number of launches at the same time.
///
/// Errors    Fault that names each instruction that is not known here.
class Executable {
 public:
  Executable(const ptx::Module& module, const ptx::Kernel& kernel);
  ~Executable();
  const ptx::Kernel& kernel() const;
  /// "gemm_run_kernel<float>, kernels/ops/gemm/1_strips.cu:30: ld.global.f32 %f1, [%rd2];"
  std::string describe(std::size_t position) const;

 private:
  friend class Grid;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct LaunchSpec {
  Extent grid;
  Extent block;
  std::size_t dynamic_shared_bytes = 0;
  /// As the kernel's parameters lie in memory (ptx::Variable::offset), at least 128-byte aligned.
  std::span<const std::byte> parameters;
  int device = 0;
};

struct ExecutionOptions {
  std::uint64_t seed = 0;  ///< of the order in which the warps of a block, and blocks, are executed
  unsigned threads = 1;    ///< of the host; blocks are shared out over them
  bool checks_races = true;
  /// Instructions of a block's warps, after which it is taken to run for ever: a Fault. Several minutes.
  std::uint64_t most_instructions = std::uint64_t{1} << 33;
  /// Above 0: Counters also has what costs time to count, by multiprocessor: block i is on the i-th, modulo this.
  unsigned counted_multiprocessors = 0;
};

/// Executes a grid to its end.
///
/// Errors    Fault, the first one; what other blocks did until then stays in memory.
/// Numerics  as PTX ISA defines; approximate functions (ex2.approx, rcp.approx, ...) are rounded from double precision.
///
/// `accesses`: what the launch did with global memory goes there, if it is not null and races are checked.
Counters run(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory,
             const ExecutionOptions& options, AccessLog* accesses = nullptr);

}  // namespace gradring::simulated_gpu
