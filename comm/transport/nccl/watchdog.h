// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "comm/transport/nccl/group_health.h"
#include "comm/transport/shared_memory/process_handle.h"
#include "kernels/runtime/device.h"

namespace gradring::comm::nccl {

/// A peer's process, where it is on this host and so can be watched.
using PeerProcesses = std::vector<std::unique_ptr<ProcessHandle>>;

/// Sees to it that no stream waits for ever. A thread of its own looks at the collectives in the order in which they were
/// begun: one that has started on its stream must end within the timeout. It is not asked how long work before it takes.
/// It breaks the group if
///
///   * another rank has broken it (the news board);
///   * a peer's process on this host has ended without taking leave;
///   * NCCL reports an error, or a peer has left that would be needed, while a collective waits;
///   * a collective's time is over. Ranks that wait for a while write where they stand; so the one that is elsewhere is
///     found: a Desync if it is in another collective of the same number, else a Timeout of who has not come there.
///
/// Threads   one thread begins, notes and ends collectives.
class Watchdog {
 public:
  struct Spec {
    int rank = 0;
    int world_size = 1;
    std::chrono::nanoseconds timeout{};
  };
  Watchdog(const Spec& spec, kernels::Device& device, GroupHealth& health, NewsBoard& board, Communicator& communicator,
           PeerProcesses processes);
  ~Watchdog();

  /// Begins a collective: what is enqueued on `stream` until `end` belongs to it.
  void begin(kernels::Stream& stream, std::string_view operation);
  /// What the newest collective is doing now, for messages; `what` tells it from all others.
  void note(const Errand& errand, const std::string& what, const std::vector<int>& peers);
  void end(kernels::Stream& stream);

  /// How many collectives were begun.
  std::uint64_t begun() const;
  /// Blocks until every collective has ended, the group is broken, or the deadline has passed.
  void drain(Deadline deadline);

 private:
  using Clock = Deadline::Clock;

  /// What is known of a collective on its way.
  struct Story {
    std::uint64_t number = 0;
    Errand errand;
    std::string what;
    std::vector<int> peers;
    std::optional<Clock::time_point> since;  // when it was seen to have started
  };
  struct Watched {
    Story story;
    std::unique_ptr<kernels::Event> started;
    std::unique_ptr<kernels::Event> ended;
    bool posted = false;  // `ended` was recorded
  };

  void serve();
  void drop_ended();
  std::optional<Story> oldest();
  void judge(const std::optional<Story>& oldest);
  void hear_news(const std::optional<Story>& oldest);
  void tell_position(const Story& story);
  void blame_for_lateness(const Story& story);

  Spec spec_;
  kernels::Device& device_;
  GroupHealth& health_;
  NewsBoard& board_;
  Communicator& communicator_;
  PeerProcesses processes_;
  Clock::time_point heard_;  // when it last looked for news
  std::uint64_t told_ = 0;   // the collective of which it last said that this rank waits in it

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // the thread waits for collectives and for the end, drain for no collectives
  std::deque<Watched> watched_;
  std::uint64_t begun_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gradring::comm::nccl
