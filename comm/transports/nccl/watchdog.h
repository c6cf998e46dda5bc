// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "comm/transports/nccl/group_health.h"
#include "comm/transports/shared_memory/process_handle.h"
#include "kernels/runtime/device.h"

namespace gradring::comm::nccl {

/// Handles of the peers' processes on this host; null for the others.
using PeerProcesses = std::vector<std::unique_ptr<ProcessHandle>>;

/// A thread that ensures that no stream waits forever. It checks collectives in the order of their start: one that has
/// started on its stream must end within the timeout. Work before it on the stream does not count. The watchdog fails
/// the group if
///
///   * another rank has failed it (ErrorPropagation), or this rank has, in another transport;
///   * a peer's process on this host has ended without leaving the group;
///   * NCCL reports an error, or a needed peer has left, while a collective waits;
///   * a collective exceeds the timeout. Late ranks publish their positions. A rank at another collective of the same
///     number gives a Desync, else a rank that has not reached the collective gives a Timeout.
///
/// Threads   one thread calls begin, note and end.
class Watchdog {
 public:
  /// All of them must outlive it.
  Watchdog(const NcclOptions& options, GroupHealth& health, ErrorPropagation& propagation, Communicator& communicator,
           PeerProcesses processes);
  ~Watchdog();

  /// Starts a collective: it consists of what is enqueued on `stream` until `end`.
  void begin(kernels::Stream& stream, std::string_view operation);
  /// Describes the newest collective for messages; `what` identifies it on all ranks.
  void note(const PendingOp& op, const std::string& what, const std::vector<int>& peers);
  void end(kernels::Stream& stream);

  /// The number of collectives started.
  std::uint64_t begun() const;
  /// Blocks until every collective has ended, the group has failed, or the deadline has passed.
  void drain(Deadline deadline);

 private:
  using Clock = Deadline::Clock;

  struct Collective {
    std::uint64_t number = 0;
    PendingOp op;
    std::string what;
    std::vector<int> peers;
    std::optional<Clock::time_point> since;  // when its start was detected
  };
  struct Watched {
    Collective collective;
    std::unique_ptr<kernels::Event> started;
    std::unique_ptr<kernels::Event> ended;
    bool posted = false;  // `ended` was recorded
  };

  void run();
  void drop_ended();
  std::optional<Collective> oldest();
  void check(const std::optional<Collective>& oldest);
  void check_peers(const std::optional<Collective>& oldest);
  std::optional<std::uint64_t> left_after(int peer);
  void report_timeout(const Collective& collective);

  const NcclOptions& options_;
  GroupHealth& health_;
  ErrorPropagation& propagation_;
  Communicator& communicator_;
  PeerProcesses processes_;
  const std::chrono::nanoseconds peer_interval_;          // of checks of the store and of processes
  std::vector<std::optional<std::uint64_t>> left_after_;  // by rank, as far as the store was read
  Clock::time_point peers_checked_;
  std::uint64_t published_ = 0;  // number of the collective whose position was published last

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for the thread: stop_; for drain: no collectives
  std::deque<Watched> watched_;
  std::uint64_t begun_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gradring::comm::nccl
