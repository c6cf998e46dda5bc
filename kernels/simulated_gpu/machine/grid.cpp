// SPDX-License-Identifier: Apache-2.0
// The blocks of a launch over host threads and in turns: machine/launch.h.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/runtime/philox.h"
#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/findings.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/launch_state.h"
#include "kernels/simulated_gpu/machine/progress_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Instructions of a block until another one has its turn, although this one does not wait.
constexpr std::uint64_t kLongTurn = std::uint64_t{1} << 24;
/// The same at most, with a seed and once a block has waited: from then on blocks are known to work together.
constexpr unsigned kShortTurn = 1u << 14;
/// A block that waits is found to wait within so many instructions. With a seed, its turn may end before.
constexpr std::uint64_t kLongestLook = std::uint64_t{1} << 16;
/// Turns of each resident block, all without progress, before the launch is taken to wait for ever.
constexpr std::uint64_t kMostIdleTurns = 100;
/// Turns of each resident block in which all of them wait, before stores are compared with what is in memory.
constexpr std::uint64_t kTurnsUntilComparison = 4;

/// What cooperative groups use for grid.sync: its size and a barrier, two words of 4 bytes, which begin with 0.
///
/// Source    cooperative_groups/details/driver_abi.h of CUDA 13.0: %envreg1 and %envreg2 have its address.
class GridWorkspace {
 public:
  GridWorkspace(GlobalMemory& memory, int device) : memory_(memory) {
    memory_.add(words_.get(), kWords * sizeof(std::uint32_t), device, false);
    memory_.mark_written(address(), kWords * sizeof(std::uint32_t));
    words_[0] = kWords * sizeof(std::uint32_t);
  }
  ~GridWorkspace() { memory_.remove(words_.get()); }
  GridWorkspace(const GridWorkspace&) = delete;
  GridWorkspace& operator=(const GridWorkspace&) = delete;

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(words_.get()); }

 private:
  static constexpr std::size_t kWords = 64;
  GlobalMemory& memory_;
  std::unique_ptr<std::uint32_t[]> words_ = std::make_unique<std::uint32_t[]>(kWords);
};

/// Whether a block may do what depends on which blocks came before it, as the one that ends last: one host thread gives
/// them the same order in each run, and counters the same values.
bool reads_arrivals(const ptx::Kernel& kernel) {
  return std::ranges::any_of(kernel.code, [](const ptx::Instruction& instruction) {
    return instruction.words.front() == "atom" && std::ranges::count(instruction.words, "shared") == 0;
  });
}

}  // namespace

/// A launch. Each host thread executes a cluster (a block, without clusters) to its end and then takes the next one, as
/// long as they do not wait for each other. If one waits, the thread suspends it and takes another one that has not
/// begun, up to the number of blocks that the GPU holds; then it gives those that are suspended their turns.
class Grid {
 public:
  static Counters run(const Executable& executable, const LaunchSpec& wanted, GlobalMemory& memory,
                      const ExecutionOptions& options, AccessLog* accesses) {
    Program& program = *executable.program_;
    const LaunchSpec launch = with_cluster(wanted, *program.kernel);
    std::shared_ptr<LaunchState> state = program.reusable_state.exchange(nullptr);
    if (state == nullptr || !state->fits(launch, memory, options))
      state = std::make_shared<LaunchState>(launch, memory, options);
    state->launch = launch;
    state->options = options;
    Counters counters = Grid(program, *state).execute(accesses);
    state->trim();
    if (state->is_small(program)) program.reusable_state = std::move(state);
    return counters;
  }

 private:
  Grid(const Program& program, LaunchState& state)
      : program_(program),
        state_(state),
        launch_(state.launch),
        memory_(state.memory),
        options_(state.options),
        races_(state.races.emplace(state.options.most_race_bytes)) {
    check_launch();
    blocks_ = launch_.grid.count();
    clusters_ = clusters_of(launch_).count();
    const std::uint64_t room = launch_.most_resident_blocks / launch_.cluster.count();
    most_resident_ = launch_.most_resident_blocks == 0 ? clusters_ : std::clamp<std::uint64_t>(room, 1, clusters_);
    if (launch_.is_cooperative && most_resident_ < clusters_)
      refuse(joined("a cooperative launch of ", blocks_, " blocks; the GPU holds ",
                    most_resident_ * launch_.cluster.count(), " at once"));
    const unsigned threads =
        options_.counted_multiprocessors > 0 && reads_arrivals(*program_.kernel) ? 1 : options_.threads;
    threads_ = static_cast<unsigned>(std::min<std::uint64_t>(std::max(threads, 1u), clusters_));
    idle_since_.resize(threads_);
    while (state_.workers.size() < threads_) state_.workers.emplace_back();
  }

  Counters execute(AccessLog* accesses) {
    std::optional<GridWorkspace> workspace;
    if (launch_.is_cooperative) launch_.grid_workspace = workspace.emplace(memory_, launch_.device).address();
    {
      std::vector<std::jthread> helpers;
      for (unsigned i = 1; i < threads_; ++i) helpers.emplace_back([this, i] { work(i); });
      work(0);
    }
    if (error_) std::rethrow_exception(error_);
    if (is_stuck_) report_no_progress();
    if (options_.checks_races) check_races();
    if (accesses != nullptr) *accesses = std::move(accesses_);
    return std::move(counters_);
  }

  static LaunchSpec with_cluster(LaunchSpec launch, const ptx::Kernel& kernel) {
    const auto [x, y, z] = kernel.cluster;
    if (x != 0) launch.cluster = {x, y, z};
    return launch;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Fault("launch of " + kernel_label(*program_.kernel) + ": " + why);
  }

  template <class Code>
  void check_local_bytes(const Code& code, std::string (&label)(const Code&), std::size_t bytes) const {
    constexpr std::size_t kMostLocalBytes = std::size_t{512} << 10;  // CUDA C++ Programming Guide, compute capabilities
    if (bytes > kMostLocalBytes)
      refuse(joined(label(code), " has ", bytes, " bytes of local memory; expected at most ", kMostLocalBytes,
                    " for a thread"));
  }

  void check_launch() const {
    const ptx::Kernel& kernel = *program_.kernel;
    constexpr std::uint64_t kMostThreads = 1024;
    const std::uint64_t threads = launch_.block.count();
    const std::uint64_t most =
        kernel.most_threads != 0 ? std::min<std::uint64_t>(kernel.most_threads, kMostThreads) : kMostThreads;
    if (threads == 0 || threads > most) refuse(joined("a block has ", threads, " threads; expected 1 to ", most));
    if (launch_.grid.count() == 0) refuse("the grid has no blocks");
    const Extent &grid = launch_.grid, &cluster = launch_.cluster;
    if (cluster.count() == 0 || cluster.count() > ptx::kMostBlocksOfACluster)
      refuse(joined("a cluster has ", cluster.count(), " blocks; expected 1 to ", ptx::kMostBlocksOfACluster));
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
      refuse(joined("a grid of ", grid.x, " x ", grid.y, " x ", grid.z, " blocks; expected multiples of the cluster's ",
                    cluster.x, " x ", cluster.y, " x ", cluster.z));
    check_local_bytes(kernel, kernel_label, std::max(kernel.local_bytes, kernel.call_parameter_bytes));
    for (const ptx::Function& function : kernel.functions)
      check_local_bytes(function, function_label, function.local_bytes);
    for (const ptx::Function& function : kernel.functions)
      if (!function.is_defined && (options_.functions == nullptr || !options_.functions->contains(function.name)))
        refuse(joined("it calls ", function_label(function),
                      ", which is not defined in its module, nor a function of the runtime"));
    if (launch_.parameters.size() < kernel.parameter_bytes)
      refuse(joined("the parameters have ", launch_.parameters.size(), " bytes; expected ", kernel.parameter_bytes));
  }

  void check_races() {
    if (blocks_ == 1 && program_.read_only_loads.empty()) return;
    if (options_.seed == 0 && threads_ == 1 && launch_.cluster.count() == 1 && !has_waited_)
      accesses_.note_order_of_blocks();
    accesses_.finish();
    if (options_.findings == nullptr) {
      if (const auto conflict = accesses_.between_blocks()) throw LocatedFault(finding_of(*conflict));
      return;
    }
    for (const AccessLog::Conflict& conflict : accesses_.all_between_blocks()) {
      const FindingKey key{.kind = kind_of(conflict),
                           .kernel = program_.kernel,
                           .position = conflict.earlier.position,
                           .detail = std::to_string(conflict.later.position)};
      if (options_.findings->is_new(key)) options_.findings->add(key, finding_of(conflict));
    }
  }

  Finding finding_of(const AccessLog::Conflict& conflict) const {
    Finding finding = finding_of_launch(program_, launch_.device, kind_of(conflict), conflict.earlier.position,
                                        describe_race(program_, launch_.grid, memory_, conflict));
    finding.other = location_of(program_, conflict.later.position);
    return finding;
  }

  void work(unsigned index) {
    try {
      Worker& worker = state_.workers[index];
      worker = {.index = index, .ended = std::move(worker.ended)};
      for (const auto& cluster : worker.ended) cluster->begin_launch();
      worker.tally.counters.instructions.resize(program_.operations.size());
      if (options_.counted_multiprocessors > 0) {
        worker.tally.counters.by_multiprocessor.resize(options_.counted_multiprocessors);
        worker.tally.attributed.resize(program_.operations.size());
      }
      while (!is_over_)
        if (std::unique_ptr<Cluster> cluster = next_cluster(worker))
          give_turn(worker, std::move(cluster));
        else if (next_ < clusters_)
          wait_for_others(worker);
        else
          break;
      finish(worker);
    } catch (...) {
      is_over_ = true;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void finish(Worker& worker) {
    const std::lock_guard lock(mutex_);
    idle_since_[worker.index] = kDone;
    for (const auto& cluster : worker.suspended) waits_.add(*cluster);
    counters_ += worker.tally.counters;
    for (const auto& cluster : worker.ended) {
      cluster->forget_words();
      for (unsigned rank = 0; rank < cluster->size(); ++rank)
        if (GlobalAccesses* const accesses = cluster->block(rank).accesses()) accesses_.append(accesses->take());
    }
  }

  /// Who has the next turn; null if all that are left are resident elsewhere, or find no room.
  std::unique_ptr<Cluster> next_cluster(Worker& worker) {
    const bool resumes = options_.seed != 0 && !worker.suspended.empty() && draw(worker, 4) == 0;
    if (!resumes)
      if (const auto index = take_index()) {
        if (worker.ended.empty())
          worker.ended.push_back(std::make_unique<Cluster>(program_, launch_, memory_, options_, worker.tally, races_));
        std::unique_ptr<Cluster> cluster = std::move(worker.ended.back());
        worker.ended.pop_back();
        cluster->begin(*index);
        return cluster;
      }
    if (worker.suspended.empty()) return nullptr;
    const std::size_t half = (worker.suspended.size() + 1) / 2;
    const auto chosen = worker.suspended.begin() + (options_.seed == 0 ? 0 : draw(worker, static_cast<unsigned>(half)));
    std::unique_ptr<Cluster> cluster = std::move(*chosen);
    worker.suspended.erase(chosen);
    return cluster;
  }

  /// The index of a cluster that begins now; none if none is left, or if the GPU holds no more.
  std::optional<std::uint64_t> take_index() {
    if (next_ >= clusters_) return std::nullopt;
    if (resident_.fetch_add(1) < most_resident_)
      if (const std::uint64_t turn = next_++; turn < clusters_) return index_of(turn);
    --resident_;
    return std::nullopt;
  }

  /// Blocks begin in an order that is drawn from the seed, but none before all that a GPU which begins them by their
  /// index would have held before: a kernel may rely on blocks of lower index having begun (a look-back scan).
  std::uint64_t index_of(std::uint64_t turn) const {
    if (options_.seed == 0 || clusters_ == 1) return turn;
    const std::uint64_t wave = turn / most_resident_;
    const std::uint64_t begin = wave * most_resident_;
    const std::uint64_t count = std::min(most_resident_, clusters_ - begin);
    if (count == 1) return begin;
    const auto words = kernels::philox(options_.seed, wave, kOrderOfBlocks);
    const std::uint64_t first = words[0] % count;
    std::uint64_t step = 1 + words[1] % (std::min<std::uint64_t>(count, 1u << 31) - 1);
    while (std::gcd(step, count) != 1) ++step;
    return begin + static_cast<std::uint64_t>((first + static_cast<__uint128_t>(turn - begin) * step) % count);
  }

  void give_turn(Worker& worker, std::unique_ptr<Cluster> cluster) {
    const std::uint64_t executed_before = cluster->executed();
    const bool compares = worker.turns_of_waiting > kTurnsUntilComparison * (worker.suspended.size() + 1);
    cluster->compare_stores(compares);
    const Block::Outcome outcome = cluster->run(turn_of(worker));
    const bool waits = outcome == Block::Outcome::waits;
    const std::uint64_t executed = cluster->executed() - executed_before;
    cluster->executed_since_wait = waits ? 0 : cluster->executed_since_wait + executed;
    const bool works = outcome == Block::Outcome::ended || cluster->executed_since_wait >= kLongestLook;
    worker.turns_of_waiting = works ? 0 : worker.turns_of_waiting + 1;
    if (cluster->has_progressed() || works) ++progress_;
    if (races_.words.is_half_taken()) cluster->forget_words();
    if (outcome == Block::Outcome::ended) {
      --resident_;
      worker.ended.push_back(std::move(cluster));
      return;
    }
    has_waited_ = true;
    worker.suspended.push_back(std::move(cluster));
    note_idle(worker, executed);
  }

  std::uint64_t turn_of(Worker& worker) {
    return options_.seed == 0 || !has_waited_ ? kLongTurn : 1 + draw(worker, kShortTurn);
  }

  /// Nothing is left but blocks that other host threads execute, and blocks for which the GPU has no room yet.
  void wait_for_others(Worker& worker) {
    const std::uint64_t now = progress_;
    if (std::exchange(worker.idle.progress, now) == now) note_stuck(worker);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  /// A block has had its turn, and is suspended.
  void note_idle(Worker& worker, std::uint64_t executed) {
    Idleness& idle = worker.idle;
    if (const std::uint64_t now = progress_; idle.progress != now) {
      idle = {.progress = now};
      return;
    }
    ++idle.turns;
    idle.instructions += executed;
    if (threads_ > 1 && idle.turns > worker.suspended.size()) std::this_thread::yield();
    if (idle.turns >= kMostIdleTurns * worker.suspended.size() &&
        idle.instructions >= options_.most_idle_instructions / threads_)
      note_stuck(worker);
  }

  /// This host thread's blocks wait for ever, unless those of another one do something: the launch is over if all say
  /// so of the same state of it.
  void note_stuck(Worker& worker) {
    const std::lock_guard lock(mutex_);
    idle_since_[worker.index] = worker.idle.progress;
    const auto is_idle = [&](const std::optional<std::uint64_t>& since) {
      return since == kDone || since == worker.idle.progress;
    };
    if (progress_ != worker.idle.progress || !std::ranges::all_of(idle_since_, is_idle)) return;
    is_stuck_ = true;
    is_over_ = true;
  }

  [[noreturn]] void report_no_progress() const {
    const std::uint64_t of_cluster = launch_.cluster.count();
    const std::uint64_t begun = std::min<std::uint64_t>(next_, clusters_) * of_cluster;
    std::string what = joined("no progress: memory did not change and no barrier completed for ",
                              options_.most_idle_instructions, " instructions and ", kMostIdleTurns,
                              " turns of each of ", resident_.load() * of_cluster, " resident blocks");
    if (begun < blocks_)
      what += joined(", and ", blocks_ - begun,
                     blocks_ - begun == 1 ? " block of the grid has" : " blocks of the grid have",
                     " not begun, because the GPU holds ", most_resident_ * of_cluster, " at once");
    throw LocatedFault(waits_.finding(what));
  }

  unsigned draw(Worker& worker, unsigned below) const {
    return kernels::philox(options_.seed, worker.draws++, kTurnsOfBlocks - worker.index)[0] % below;
  }

  // The upper halves of Philox counters; a block's own draws have its index.
  static constexpr std::uint64_t kOrderOfBlocks = ~std::uint64_t{0};
  static constexpr std::uint64_t kTurnsOfBlocks = ~std::uint64_t{1};
  static constexpr std::uint64_t kDone = ~std::uint64_t{0};

  const Program& program_;
  LaunchState& state_;
  LaunchSpec& launch_;
  GlobalMemory& memory_;
  const ExecutionOptions& options_;
  std::uint64_t blocks_ = 0;
  std::uint64_t clusters_ = 0;
  std::uint64_t most_resident_ = 0;  ///< clusters
  unsigned threads_ = 0;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> resident_{0};  ///< clusters
  std::atomic<std::uint64_t> progress_{0};  ///< changes with whatever others may wait for
  std::atomic<bool> has_waited_{false};
  std::atomic<bool> is_over_{false};
  RaceSearch& races_;
  std::mutex mutex_;                                      ///< of what follows
  std::vector<std::optional<std::uint64_t>> idle_since_;  ///< progress_ since when a host thread has been idle; kDone
  bool is_stuck_ = false;
  WaitReport waits_;
  Counters counters_;
  AccessLog accesses_;
  std::exception_ptr error_;
};

Counters run(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory,
             const ExecutionOptions& options, AccessLog* accesses) {
  return Grid::run(executable, launch, memory, options, accesses);
}

}  // namespace gradring::simulated_gpu
