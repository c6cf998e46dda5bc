// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "tests/support/fake_nccl/fake_nccl.h"

/// NCCL's header only declares its communicator; this is the fake's.
struct ncclComm {
  int rank = 0;
  int clique = 0;  // number of the unique id, equal for all ranks of a group
  int world_size = 1;
  int polls = 0;  // remaining ncclInProgress answers
  ncclResult_t error = ncclSuccess;
  bool killed = false;
  bool aborted = false;
  bool freed = false;
  std::uint64_t reductions = 0;  // enqueued so far
};

namespace gradring::tests {

struct Operation {
  enum class Kind { send, receive, all_reduce };
  Kind kind = Kind::send;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;
  std::uint64_t reduction = 0;
};

/// A send that waits for its receive.
struct Message {
  Operation operation;
  bool taken = false;
};

/// An all-reduce that waits for all ranks.
struct Reduction {
  std::vector<std::byte> sum;
  int arrived = 0;
};

/// The state that all ranks share, guarded by one mutex.
struct FakeNccl::State : std::enable_shared_from_this<FakeNccl::State> {
  explicit State(const Behaviour& how) : behaviour(how) {}

  ncclResult_t init(int rank, ncclComm_t* comm, int world_size, const ncclUniqueId& id);
  ncclResult_t async_error(ncclComm_t comm, ncclResult_t* error);
  ncclResult_t abort(ncclComm_t comm);
  ncclResult_t retire(ncclComm_t comm, bool frees);
  ncclResult_t group_start();
  ncclResult_t group_end();
  ncclResult_t add(const Operation& operation);
  ncclResult_t allocate(int rank, void** data, std::size_t bytes);
  ncclResult_t free(void* data);
  ncclResult_t register_memory(int rank, void* data, void** handle);
  ncclResult_t deregister(void* handle);

  /// Work of a stream: all operations of one group on it.
  void run(const std::vector<Operation>& operations);
  void note_misuse(const std::string& what) { misuse.push_back(what); }

  Behaviour behaviour;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<ncclComm>> comms;
  std::map<int, int> arrived;                                                          // by clique
  std::map<std::thread::id, std::pair<int, std::vector<Operation>>> open_groups;       // nesting depth and operations
  std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<Message>>> channels;  // by clique, from, to
  std::map<std::pair<int, std::uint64_t>, Reduction> reductions;
  std::set<void*> memory;
  std::set<void*> registered;
  std::vector<std::string> misuse;
  std::size_t groups = 0;
  int cliques = 0;
};

}  // namespace gradring::tests
