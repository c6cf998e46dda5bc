// SPDX-License-Identifier: Apache-2.0
// Launches on the CPU. See kernels/simt/simt.h for the contract, which is the same on both sides.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/executor.h"
#include "kernels/simt/engine/kernel_name.h"

namespace gradring::simt {

struct Config {
  dim3 grid{1};
  dim3 block{1};
  std::size_t shared_bytes = 0;
  Site site = Site::current();  ///< of the launch, for messages; not to be given
};

namespace detail {

/// A kernel with its arguments. They are held by value, also those that the kernel takes by reference
/// (SIMT_GRID_CONST).
template <auto Kernel, class... Parameters>
struct BoundKernel {
  std::tuple<std::remove_cvref_t<Parameters>...> arguments;

  static void run_thread(const void* self) { std::apply(Kernel, static_cast<const BoundKernel*>(self)->arguments); }

  /// Plain loops around the inlined kernel, whose arguments are local copies: nothing that it stores can change them.
  static void run_flat(const void* self, const Grid& grid, std::size_t begin, std::size_t end) {
    std::apply(
        [blocks = grid.blocks, threads = grid.threads, begin, end](auto... copies) {
          for (std::size_t i = begin; i < end; ++i) {
            const Extent3 block = blocks.at(i);
            blockIdx = {block.x, block.y, block.z};
            for (unsigned z = 0; z < threads.z; ++z)
              for (unsigned y = 0; y < threads.y; ++y)
                for (unsigned x = 0; x < threads.x; ++x) {
                  threadIdx = {x, y, z};
                  Kernel(copies...);
                }
          }
        },
        static_cast<const BoundKernel*>(self)->arguments);
  }
};

inline LaunchQueue& queue_of(kernels::Stream& stream) { return *static_cast<LaunchQueue*>(stream.native_handle()); }

template <auto Kernel, bool Flat, class... Parameters, class... Arguments>
void enqueue(void (*)(Parameters...), kernels::Stream& stream, const Config& config, Arguments&&... arguments) {
  using Bound = BoundKernel<Kernel, Parameters...>;
  Grid grid;
  grid.blocks = {config.grid.x, config.grid.y, config.grid.z};
  grid.threads = {config.block.x, config.block.y, config.block.z};
  grid.shared_bytes = config.shared_bytes;
  grid.site = config.site;
  if (grid.blocks.count() == 0) return;
  grid.run_thread = &Bound::run_thread;
  if constexpr (Flat) grid.run_flat = &Bound::run_flat;
  queue_of(stream).enqueue_launch(
      [grid, bound = Bound{{std::forward<Arguments>(arguments)...}}](Executor& executor) mutable {
        grid.kernel = &bound;
        executor.run(grid);
      });
  if (kernels::LaunchObserver* observer = stream.launch_observer()) [[unlikely]]
    observer->launched({.kernel = kernel_name<Kernel>(),
                        .blocks = grid.blocks.count(),
                        .threads = grid.threads.count(),
                        .dynamic_shared_bytes = grid.shared_bytes});
}

}  // namespace detail

/// How many OS threads share the blocks of a grid.
inline unsigned workers(kernels::Stream& stream) { return detail::queue_of(stream).workers(); }

/// A CPU has none.
inline int compute_capability(const kernels::Device&) { return 0; }

template <auto Kernel, class... Arguments>
void launch(kernels::Stream& stream, const Config& config, Arguments&&... arguments) {
  detail::enqueue<Kernel, false>(Kernel, stream, config, std::forward<Arguments>(arguments)...);
}

template <auto Kernel, class... Arguments>
void launch_flat(kernels::Stream& stream, const Config& config, Arguments&&... arguments) {
  detail::enqueue<Kernel, true>(Kernel, stream, config, std::forward<Arguments>(arguments)...);
}

/// A few fat threads, each with one contiguous run of elements: what vectorises, and what costs one thread's start a
/// run.
inline Config grid_for(kernels::Stream& stream, std::size_t elements, Site site = Site::current()) {
  constexpr std::size_t kElementsWorthAThread = 4096;
  constexpr std::size_t kThreadsPerWorker = 4;
  const std::size_t threads = workers(stream);
  const std::size_t most = threads == 1 ? 1 : threads * kThreadsPerWorker;
  const std::size_t useful = (elements + kElementsWorthAThread - 1) / kElementsWorthAThread;
  return {.grid = dim3(static_cast<unsigned>(std::min(most, useful))), .block = dim3(1), .site = site};
}

}  // namespace gradring::simt
