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
#include "comm/transport/nccl/dependencies.h"
#include "kernels/host/host_device.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace gradring::tests {

/// Ranks that are threads, connected by the NCCL transport and a fake NCCL. Host helpers use the in-process transport.
class NcclRanks {
 public:
  explicit NcclRanks(int world_size, std::chrono::nanoseconds timeout = std::chrono::seconds(60),
                     const FakeNccl::Behaviour& behaviour = {});

  /// A rank's group. Collectives run on an asynchronous stream, as on a GPU; the host then waits for it, so that the
  /// test cases of all transports apply.
  std::unique_ptr<comm::ProcessGroup> join(int rank);
  /// The same on the caller's streams, without waiting.
  std::unique_ptr<comm::ProcessGroup> join_on_callers_streams(int rank);
  std::unique_ptr<comm::Transport> transport(int rank);

  std::vector<std::exception_ptr> errors(const std::function<void(comm::ProcessGroup&)>& body);
  void run(const std::function<void(comm::ProcessGroup&)>& body);

  FakeNccl& fake() { return fake_; }
  comm::MemoryStore& store() { return store_; }
  kernels::HostDevice& device() { return device_; }
  /// The messages of ranks that would have ended their process.
  std::vector<std::string> exit_messages() const;
  /// The environment variables that the ranks set for NCCL: "NCCL_HOSTID=...".
  std::vector<std::string> environment() const;

  /// May be changed before the ranks join.
  bool allow_shared_gpu = false;
  std::string gpu;  ///< empty: each rank has its own
  std::chrono::nanoseconds abort_timeout = std::chrono::seconds(20);
  bool captured = false;  ///< whether every stream is treated as captured

 private:
  int world_size_;
  std::chrono::nanoseconds timeout_;
  FakeNccl fake_;
  kernels::HostDevice device_;
  kernels::KernelSet kernels_;
  comm::MemoryStore store_;
  std::shared_ptr<comm::InProcessRendezvous> control_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<std::string> exit_messages_;
  std::vector<std::string> environment_;
};

}  // namespace gradring::tests
