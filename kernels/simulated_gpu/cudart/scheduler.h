// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "kernels/simulated_gpu/memory/work_order.h"

namespace gradring::simulated_gpu {

/// The enqueued work of all devices of a process, and the threads that perform it (README.md, "When work runs").
///
/// Work waits for the work that it was enqueued behind, and for nothing else. It is held back until a call asks for its
/// end (request), or until no call came for a while and none waits. What is performed for a request was enqueued before
/// it, so the order depends on the seed and the calls alone, not on the speed of the machine. The exception: if a
/// request waits for a function of the host, which may wait for another process, later work runs after the same delay.
///
/// Work belongs to lanes (a stream, a branch of a graph). Each lane has a priority, drawn from the seed, and new ones
/// are drawn after every few pieces of work. A missing dependency between two lanes is thus seen with about every
/// second seed, however long the lanes are (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of
/// finding bugs", 2010). Drawing each piece of work by itself would nearly always alternate between lanes.
///
/// Threads   any.
class Scheduler {
 public:
  struct Work;
  /// Null is work that is done.
  using WorkPtr = std::shared_ptr<const Work>;
  /// Of what the host does itself.
  static constexpr std::uint64_t kHostLane = 0;

  struct Spec {
    /// Performs the work; returns its time on the device in counted seconds. Throws nothing. Empty: work that only
    /// joins others.
    std::function<double()> run;
    bool on_host = false;  ///< a function of the host
    std::uint64_t lane = 0;
    /// Of the work that it is enqueued behind: a kernel that it may overlap (OrderedWork::before_wait). It is performed
    /// after it all the same.
    WorkPtr overlaps{};
  };

  Scheduler(std::uint64_t seed, std::chrono::milliseconds hold);
  ~Scheduler();

  /// Draws other priorities from now on.
  void reseed(std::uint64_t seed);

  /// The first of `count` new lanes.
  std::uint64_t new_lanes(std::uint64_t count);

  WorkPtr enqueue(Spec spec, std::span<const WorkPtr> after);
  /// The host itself uses memory now: behind the work that it knows to be done, and before what is enqueued later.
  OrderedWork host_use();
  /// If so, the host knows it: what is enqueued later is behind that work.
  bool is_done(const WorkPtr& work);
  /// When it was done, by the counted clock: the latest end of what it waited for, and its own time. 0 for null.
  double end_seconds(const WorkPtr& work) const;

  /// Lets the device go on until `work` is done; does not wait.
  void request(const WorkPtr& work);
  /// Waits until `work` is done.
  void wait(const WorkPtr& work);
  /// Waits until everything is done that has been enqueued.
  void wait_for_all();

  /// Performs nothing more; waits for what is being performed, but not longer than `patience`.
  void stop(std::chrono::milliseconds patience);

 private:
  using MutableWork = std::shared_ptr<Work>;
  /// Lets work up to `limit` run, until `target` is done; without a target, while there is some.
  struct Request {
    std::uint64_t limit = 0;
    WorkPtr target;
  };

  void serve();
  void serve_host();
  void perform(std::unique_lock<std::mutex>& lock, const MutableWork& work);
  void run(std::unique_lock<std::mutex>& lock, const MutableWork& work);
  /// Returns   whether somebody waits for what is done now.
  bool complete(const MutableWork& work, double seconds);
  /// Null if nothing may run now.
  MutableWork next();
  MutableWork best_ready(std::uint64_t limit);
  std::uint64_t priority(std::uint64_t lane) const;
  void add_request(const WorkPtr& work);
  void host_knows(const KnownDone& done);
  void start_threads();

  std::uint64_t seed_;
  const std::chrono::milliseconds hold_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something to do, or something done
  std::condition_variable host_work_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_lane_ = 0;
  std::uint64_t performed_ = 0;
  KnownDone known_to_host_;
  std::vector<std::optional<std::uint64_t>> lanes_;  // by number - 1; empty for work that only joins others
  std::vector<MutableWork> ready_;
  std::set<std::uint64_t> unfinished_;    // numbers
  std::multiset<std::uint64_t> awaited_;  // by wait_for_all(): numbers up to these
  std::deque<Request> requests_;
  std::deque<MutableWork> host_queue_;
  int running_ = 0;  // being performed now, by either thread
  std::chrono::steady_clock::time_point last_call_;
  bool stopping_ = false;
  bool started_ = false;
  std::thread device_;
  std::thread host_;
};

}  // namespace gradring::simulated_gpu
