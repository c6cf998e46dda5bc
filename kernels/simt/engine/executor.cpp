// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/executor.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/block.h"
#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/grid.h"
#include "kernels/simt/engine/pool.h"
#include "kernels/simt/engine/sanitizer.h"
#include "kernels/simt/engine/shared_memory.h"

thread_local constinit uint3 threadIdx{0, 0, 0};
thread_local constinit uint3 blockIdx{0, 0, 0};
thread_local constinit uint3 blockDim{1, 1, 1};
thread_local constinit uint3 gridDim{1, 1, 1};

namespace gradring::simt::detail {
thread_local constinit unsigned char* dynamic_shared = nullptr;
thread_local constinit std::size_t dynamic_shared_bytes = 0;

/// What one OS thread needs to run blocks of a grid: shared memory, and stacks once a kernel wants them.
class Worker {
 public:
  explicit Worker(const ExecutorOptions& options) : options_(options) {}

  /// Before the first run of a launch: sets gridDim, blockDim and the dynamic shared memory on the calling OS thread.
  void begin(const Grid& grid) {
    shared_.resize(grid.shared_bytes);
    dynamic_shared = shared_.data();
    dynamic_shared_bytes = grid.shared_bytes;
    gridDim = {grid.blocks.x, grid.blocks.y, grid.blocks.z};
    blockDim = {grid.threads.x, grid.threads.y, grid.threads.z};
  }

  /// Runs blocks [begin, end).
  void run(const Grid& grid, std::size_t begin, std::size_t end) {
    // A flat kernel takes the way of all others where that finds more: races, order of threads.
    if (grid.run_flat && !kChecked && options_.order == ThreadOrder::forward)
      grid.run_flat(grid.kernel, grid, begin, end);
    else
      run_threads(grid, begin, end);
  }

  /// After the last run of a launch.
  void end() {
    if (block_) block_->release_identities();
  }

 private:
  void run_threads(const Grid& grid, std::size_t begin, std::size_t end) {
    /// Makes a block the calling OS thread's until the end of the scope, also if a kernel fails.
    struct Current {
      explicit Current(Block& block) { set_current_block(&block); }
      ~Current() { set_current_block(nullptr); }
    };
    if (!block_) block_ = std::make_unique<Block>(options_);
    const Current current(*block_);
    for (std::size_t i = begin; i < end; ++i) {
      const Extent3 block = grid.blocks.at(i);
      blockIdx = {block.x, block.y, block.z};
      if (options_.poison_shared) {
        shared_.poison();
        poison_shared_variables();
      }
      block_->run(grid, i);
    }
  }

  ExecutorOptions options_;
  DynamicShared shared_;
  std::unique_ptr<Block> block_;
};

}  // namespace gradring::simt::detail

namespace gradring::simt {
namespace {

constexpr unsigned kLeastWorkersUnderTsan = 2;

/// Under TSan every worker gets its share of the blocks, however late it wakes: the digit sum of the block's number in
/// base `workers`. Unlike the plain remainder it parts blocks at any distance that a kernel may have its conflicts at.
[[maybe_unused]] unsigned worker_for(std::size_t block, unsigned workers) {
  std::size_t sum = 0;
  for (; block != 0; block /= workers) sum += block % workers;
  return static_cast<unsigned>(sum % workers);
}

std::string text_of(Extent3 extent) {
  return "(" + std::to_string(extent.x) + "," + std::to_string(extent.y) + "," + std::to_string(extent.z) + ")";
}

[[noreturn]] void refuse(const Grid& grid, const std::string& message) {
  throw Error(message + ", at " + grid.site.file + ":" + std::to_string(grid.site.line), grid.site);
}

/// The limits of compute capability 9.0.
void check_launch(const Grid& grid) {
  const Extent3 threads = grid.threads;
  if (threads.count() == 0 || threads.count() > 1024 || threads.x > 1024 || threads.y > 1024 || threads.z > 64)
    refuse(grid, "bad block size " + text_of(threads) + ": expected 1 to 1024 threads, at most 64 of them along z");
  if (grid.blocks.x > 0x7fffffffu || grid.blocks.y > 65535 || grid.blocks.z > 65535)
    refuse(grid, "bad grid size " + text_of(grid.blocks) + ": expected at most 2147483647 x 65535 x 65535 blocks");
  if (grid.shared_bytes > detail::kMostSharedBytes)
    refuse(grid, "bad shared memory size " + std::to_string(grid.shared_bytes) + ": expected at most " +
                     std::to_string(detail::kMostSharedBytes) + " bytes");
}

}  // namespace

Executor::Executor(const ExecutorOptions& options) : options_(options) {
  options_.workers = std::max(options_.workers, detail::kThreadSanitizer ? kLeastWorkersUnderTsan : 1u);
  workers_.resize(options_.workers);
}

Executor::~Executor() = default;

detail::Worker& Executor::worker(unsigned index) {
  if (!workers_[index]) workers_[index] = std::make_unique<detail::Worker>(options_);
  return *workers_[index];
}

void Executor::run(const Grid& grid) {
  const std::size_t blocks = grid.blocks.count();
  if (blocks == 0) return;
  check_launch(grid);
  const auto wanted = static_cast<unsigned>(std::min<std::size_t>(options_.workers, blocks));
  if (wanted > 1) return run_on_all(grid, wanted);
  detail::Worker& only = worker(0);
  only.begin(grid);
  only.run(grid, 0, blocks);
  only.end();
}

void Executor::run_on_all(const Grid& grid, unsigned workers) {
  const std::size_t blocks = grid.blocks.count();
  // A few slices a worker, so that none waits long for the slowest.
  const std::size_t slice = std::max<std::size_t>(1, blocks / (std::size_t{workers} * 8));
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::vector<std::exception_ptr> failures(workers);
  for (unsigned i = 0; i < workers; ++i) worker(i);

  const auto work = [&](unsigned index) {
    detail::Worker& mine = *workers_[index];
    mine.begin(grid);
    if constexpr (detail::kThreadSanitizer) {
      for (std::size_t i = 0; i < blocks && !stop.load(std::memory_order_relaxed); ++i)
        if (worker_for(i, workers) == index) mine.run(grid, i, i + 1);
    } else {
      while (!stop.load(std::memory_order_relaxed)) {
        const std::size_t begin = next.fetch_add(slice, std::memory_order_relaxed);
        if (begin >= blocks) break;
        mine.run(grid, begin, std::min(begin + slice, blocks));
      }
    }
    mine.end();
  };
  if (!pool_) pool_ = std::make_unique<detail::Pool>(options_.workers - 1);
  pool_->run(workers, [&](unsigned index) {
    try {
      work(index);
    } catch (...) {
      failures[index] = std::current_exception();
      stop.store(true, std::memory_order_relaxed);
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace gradring::simt
