// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"

namespace gradring::simulated_gpu {

/// Work of a stream. `run` performs it, and returns its counted seconds; `counted` gets what it was, if not null.
struct StreamWork {
  std::function<double(CountedWork* counted)> run;
  CountedWork::Kind kind = CountedWork::Kind::kernel;
  std::string name{};         ///< of the call or library that enqueued it; of a kernel: its own, once it is executed
  bool on_host = false;       ///< a function of the host
  bool begins_early = false;  ///< a launch that need not wait for the end of the one before it
  std::function<void()> enqueued{};  ///< called whenever it is enqueued, also by a graph; may be empty
};

/// What is enqueued while somebody wants to know what it costs. Off at first; then it costs nothing.
///
/// Threads   the runtime's lock guards it; entries are filled by the thread that performs the work.
class Counting {
 public:
  bool is_on() const { return is_on_; }
  /// Whether kernels are listed instruction by instruction (LaunchCounts::listing).
  bool lists() const { return lists_; }
  void begin(bool lists = false) {
    is_on_ = true;
    lists_ = lists;
    graph_launches_ = 0;
    entries_.clear();
  }
  /// What was enqueued since begin(), in that order; all of it must be done.
  std::vector<CountedWork> end() {
    is_on_ = false;
    std::vector<CountedWork> all;
    for (const auto& entry : std::exchange(entries_, {})) all.push_back(std::move(*entry));
    return all;
  }

  /// The number of a graph's launch, from 1.
  std::size_t next_graph_launch() { return ++graph_launches_; }
  std::size_t size() const { return entries_.size(); }
  /// What the scheduler is to run: `work`, with an entry if counting is on. `after`: entries that it waits for.
  std::function<double()> counted(const StreamWork& work, int device, std::size_t graph_launch = 0,
                                  std::vector<std::size_t> after = {}) {
    if (!is_on_) return [run = work.run] { return run(nullptr); };
    entries_.push_back(std::make_shared<CountedWork>(CountedWork{.kind = work.kind,
                                                                 .name = work.name,
                                                                 .device = device,
                                                                 .graph_launch = graph_launch,
                                                                 .after = std::move(after)}));
    return [run = work.run, entry = entries_.back()] { return run(entry.get()); };
  }

 private:
  bool is_on_ = false;
  bool lists_ = false;
  std::size_t graph_launches_ = 0;
  std::vector<std::shared_ptr<CountedWork>> entries_;
};

}  // namespace gradring::simulated_gpu
