// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "kernels/runtime/philox.h"
#include "kernels/simulated_gpu/executable_parts.h"
#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {

/// A launch: host threads take blocks until none is left or one of them has found a fault.
class Grid {
 public:
  Grid(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory, const ExecutionOptions& options)
      : program_(executable.parts_->program),
        launch_(launch),
        memory_(memory),
        options_(options),
        blocks_(launch.grid.count()) {
    check_launch();
    draw_order();
  }

  Counters run(AccessLog* accesses);

 private:
  void check_launch() const;
  void check_races();
  void draw_order();
  void work();

  const Program& program_;
  const LaunchSpec& launch_;
  GlobalMemory& memory_;
  const ExecutionOptions& options_;
  std::uint64_t blocks_;
  std::uint64_t first_ = 0;  ///< the i-th block to be executed is first_ + i * step_, modulo their number
  std::uint64_t step_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;  ///< of the three below
  Counters counters_;
  AccessLog accesses_;
  std::exception_ptr error_;
};

void Grid::check_launch() const {
  const ptx::Kernel& kernel = *program_.kernel;
  const auto refuse = [&](const std::string& why) { throw Fault("launch of " + kernel_label(kernel) + ": " + why); };
  constexpr std::uint64_t kMostThreads = 1024;
  const std::uint64_t threads = launch_.block.count();
  const std::uint64_t most =
      kernel.most_threads != 0 ? std::min<std::uint64_t>(kernel.most_threads, kMostThreads) : kMostThreads;
  if (threads == 0 || threads > most)
    refuse("a block has " + std::to_string(threads) + " threads; expected 1 to " + std::to_string(most));
  if (blocks_ == 0) refuse("the grid has no blocks");
  if (launch_.parameters.size() < kernel.parameter_bytes)
    refuse("the parameters have " + std::to_string(launch_.parameters.size()) + " bytes; expected " +
           std::to_string(kernel.parameter_bytes));
}

void Grid::draw_order() {
  if (options_.seed == 0 || blocks_ == 1) return;
  const auto words = kernels::philox(options_.seed, 0, ~std::uint64_t{0});
  first_ = words[0] % blocks_;
  step_ = 1 + words[1] % (std::min<std::uint64_t>(blocks_, 1u << 31) - 1);
  while (std::gcd(step_, blocks_) != 1) ++step_;
}

void Grid::work() {
  try {
    Block block(program_, launch_, memory_, options_);
    for (std::uint64_t i = next_++; i < blocks_; i = next_++)
      block.run(static_cast<std::uint64_t>((first_ + static_cast<__uint128_t>(i) * step_) % blocks_));
    const std::lock_guard lock(mutex_);
    counters_ += block.counters();
    if (block.accesses() != nullptr) accesses_.append(block.accesses()->take());
  } catch (...) {
    next_ = blocks_;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void Grid::check_races() {
  if (blocks_ == 1) return;
  accesses_.finish();
  if (const auto conflict = accesses_.between_blocks())
    throw Fault(describe_race(program_, launch_.grid, memory_, *conflict));
}

Counters Grid::run(AccessLog* accesses) {
  {
    std::vector<std::jthread> helpers;
    const std::uint64_t threads = std::min<std::uint64_t>(std::max(options_.threads, 1u), blocks_);
    for (std::uint64_t i = 1; i < threads; ++i) helpers.emplace_back([this] { work(); });
    work();
  }
  if (error_) std::rethrow_exception(error_);
  if (options_.checks_races) check_races();
  if (accesses != nullptr) *accesses = std::move(accesses_);
  return std::move(counters_);
}

Counters run(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory,
             const ExecutionOptions& options, AccessLog* accesses) {
  return Grid(executable, launch, memory, options).run(accesses);
}

}  // namespace gradring::simulated_gpu
