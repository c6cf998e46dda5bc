// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"
#include "comm/transports/in_process/in_process.h"
#include "comm/transports/nccl/dependencies.h"
#include "tests/support/fake_nccl/fake_gpu.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace gradring::tests {

/// A store with little room, which records the keys that get looks for.
class RecordingStore final : public comm::Store {
 public:
  static constexpr std::size_t kMostEntries = 100;

  void set(const std::string& key, const std::string& value) override { entries_.set(key, value); }
  std::string wait(const std::string& key, Deadline deadline) override { return entries_.wait(key, deadline); }
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override { return entries_.add(key, increment); }
  void remove(const std::string& key) override { entries_.remove(key); }

  std::vector<std::string> looked_for() const;

 private:
  comm::MemoryStore entries_{kMostEntries};
  mutable std::mutex mutex_;
  std::vector<std::string> looked_for_;
};

/// Ranks that are threads with a fake GPU each, connected by the NCCL transport and a fake NCCL. Host helpers use the
/// in-process transport. The destructor fails the test if a rank misused NCCL or its GPU.
class NcclRanks {
 public:
  explicit NcclRanks(int world_size, std::chrono::nanoseconds timeout = std::chrono::seconds(60),
                     const FakeNccl::Behaviour& behaviour = {});
  ~NcclRanks();

  /// A rank's group. Collectives run on an asynchronous stream, as on a GPU; the host then waits for it, so that the
  /// test cases of all transports apply.
  std::unique_ptr<comm::ProcessGroup> join(int rank);
  /// The same on the caller's streams, without waiting.
  std::unique_ptr<comm::ProcessGroup> join_on_callers_streams(int rank);
  std::unique_ptr<comm::Transport> transport(int rank);

  std::vector<std::exception_ptr> errors(const std::function<void(comm::ProcessGroup&)>& body);
  void run(const std::function<void(comm::ProcessGroup&)>& body);

  FakeNccl& fake() { return fake_; }
  RecordingStore& store() { return store_; }
  FakeGpu& device(int rank) { return *gpus_[static_cast<std::size_t>(rank)]; }
  /// Misuse so far, which then does not fail the test.
  std::vector<std::string> take_misuse() { return misuse_.take(); }
  /// The messages of ranks that would have ended their process.
  std::vector<std::string> exit_messages() const;
  /// The environment variables that the ranks set for NCCL: "NCCL_HOSTID=...".
  std::vector<std::string> environment() const;

  /// May be changed before the ranks join.
  bool allow_shared_gpu = false;
  std::string gpu;  ///< bus id of all ranks; empty: each rank has its own
  /// Changes a rank's dependencies.
  std::function<void(int rank, comm::nccl::Dependencies& dependencies)> adjust = [](int, auto&) {};
  bool make_current = true;  ///< whether ranks make their device current, as the CUDA module does
  bool captured = false;     ///< whether join's groups capture each collective into a graph, and run that

 private:
  int world_size_;
  std::chrono::nanoseconds timeout_;
  MisuseLog misuse_;
  FakeNccl fake_;
  std::vector<std::unique_ptr<FakeGpu>> gpus_;
  kernels::KernelSet kernels_;
  RecordingStore store_;
  std::shared_ptr<comm::InProcessRendezvous> control_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<std::string> exit_messages_;
  std::vector<std::string> environment_;
};

}  // namespace gradring::tests
