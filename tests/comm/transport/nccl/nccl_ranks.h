// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/transport/in_process/in_process.h"
#include "comm/transport/nccl/surroundings.h"
#include "kernels/runtime/host/host_device.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace gradring::tests {

/// Ranks that are threads and talk through the NCCL transport and the stand-in for NCCL. The host helpers of their groups
/// go another way.
class NcclRanks {
 public:
  explicit NcclRanks(int world_size, std::chrono::nanoseconds timeout = std::chrono::seconds(60),
                     const FakeNccl::Behaviour& behaviour = {});

  /// As a rank sees it. Collectives run on an asynchronous stream of the rank's own, as on a GPU whatever stream they are
  /// given to does; the host then waits for it, so that the cases of all transports hold.
  std::unique_ptr<comm::ProcessGroup> join(int rank);
  /// The same, on the caller's streams, for which nobody waits.
  std::unique_ptr<comm::ProcessGroup> join_on_callers_streams(int rank);
  std::unique_ptr<comm::Transport> transport(int rank);

  std::vector<std::exception_ptr> errors(const std::function<void(comm::ProcessGroup&)>& body);
  void run(const std::function<void(comm::ProcessGroup&)>& body);

  FakeNccl& fake() { return fake_; }
  comm::MemoryStore& store() { return store_; }
  kernels::HostDevice& device() { return device_; }
  /// What a rank said before it would have left its process.
  std::vector<std::string> last_words() const;
  /// What the ranks told NCCL by the environment: "NCCL_HOSTID=...".
  std::vector<std::string> environment() const;

  /// May be changed before the ranks join.
  bool allow_shared_gpu = false;
  std::string gpu;  ///< empty: each rank has its own
  std::chrono::nanoseconds abort_patience = std::chrono::seconds(20);
  bool captured = false;  ///< whether every stream counts as captured

 private:
  int world_size_;
  std::chrono::nanoseconds timeout_;
  FakeNccl fake_;
  kernels::HostDevice device_;
  kernels::KernelSet kernels_;
  comm::MemoryStore store_;
  std::shared_ptr<comm::InProcessMeeting> control_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<std::string> last_words_;
  std::vector<std::string> environment_;
};

}  // namespace gradring::tests
