// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "tests/support/fake_nccl/fake_gpu.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace gradring::tests {

struct Operation {
  enum class Kind { send, receive, all_reduce };
  Kind kind = Kind::send;
  ncclComm* comm = nullptr;
  FakeStream* stream = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;
  bool registered = false;  ///< its buffer, when the group was launched
  bool captured = false;    ///< into a graph
};

/// The bytes of the operation's buffer.
std::size_t bytes_of(const Operation& operation);

}  // namespace gradring::tests

/// NCCL's header only declares its communicator; this is the fake's.
struct ncclComm {
  int rank = 0;
  int clique = 0;  // number of the unique id, equal for all ranks of a group
  int world_size = 1;
  int device = 0;  // that was current at the initialization
  bool blocking = true;
  int polls = 0;  // remaining ncclInProgress answers
  ncclResult_t error = ncclSuccess;
  std::string last_error;
  std::vector<gradring::tests::Operation> held;  // of a group that is not launched yet
  int in_flight = 0;                             // groups on streams, also those of launched graphs
  int graphs = 0;                                // captured groups whose graph lives
  bool finalizing = false;
  bool revoked = false;
  bool aborted = false;  // its operations end; false again when a revoke has completed
  bool freeing = false;  // a destroy or an abort has begun
  bool freed = false;
  bool killed = false;
  bool stopped = false;
  std::uint64_t reductions = 0;  // run so far
};

namespace gradring::tests {

/// The variables of a rank's process.
struct Environment {
  std::map<std::string, std::string> variables;
  bool read = false;  // by NCCL

  bool graphs_register() const {
    const auto variable = variables.find("NCCL_GRAPH_REGISTER");
    return variable == variables.end() || variable->second != "0";
  }
};

/// A send that waits for its receive.
struct Message {
  Operation operation;
  bool taken = false;
};

/// Operations that a thread collects until the end of its group.
struct OpenGroup {
  int depth = 0;  // of nesting
  std::vector<Operation> operations;
  ncclResult_t error = ncclSuccess;  // of a refused call
};

/// An all-reduce that waits for all ranks.
struct Reduction {
  Operation first;  // that arrived
  std::vector<std::byte> sum;
  int arrived = 0;
};

/// The state that all ranks share, guarded by one mutex. communicators.cpp and groups.cpp implement the calls, work.cpp
/// what streams run, rules.h what is forbidden.
struct FakeNccl::State : std::enable_shared_from_this<FakeNccl::State> {
  using Lock = std::unique_lock<std::mutex>;
  State(const Behaviour& how, MisuseLog& log) : behaviour(how), misuse(log) {}

  ncclResult_t init(int rank, ncclComm_t* comm, int world_size, const ncclUniqueId& id, const ncclConfig_t* config);
  ncclResult_t async_error(ncclComm_t comm, ncclResult_t* error);
  ncclResult_t finalize(ncclComm_t comm);
  ncclResult_t destroy(ncclComm_t comm);
  ncclResult_t abort(ncclComm_t comm);
  ncclResult_t revoke(ncclComm_t comm);

  ncclResult_t group_start();
  ncclResult_t group_end();
  ncclResult_t add(Operation operation, cudaStream_t stream);

  bool is_registered(const Operation& operation, bool captured);

  /// Work of a stream: all operations of one group on it.
  void run(const std::vector<Operation>& operations);

  /// Why NCCL refuses the operation, or ncclSuccess.
  ncclResult_t check(const Operation& operation, Lock& lock);
  /// Notes what a call reports, for ncclGetLastError.
  ncclResult_t refuse(ncclComm_t comm, ncclResult_t result, const std::string& text);
  /// Begins a call: a stopped process makes none.
  Lock enter(ncclComm_t comm);
  /// Whether all that the communicator has accepted is done; launches what it may.
  bool settle(ncclComm_t comm, Lock& lock);
  void wait_until_settled(ncclComm_t comm, Lock& lock);
  bool is_connected(const Operation& operation) const;
  bool is_connected(int clique, int from, int to) const;
  void launch(ncclComm_t comm, Lock& lock);
  void drop_held_group(ncclComm_t comm);
  ncclResult_t free(ncclComm_t comm, bool aborts, Lock& lock);
  bool complete_revoke(ncclComm& comm);
  bool peers_have_ended(const ncclComm& comm) const;
  /// Counts in `counter` until the result is destroyed.
  std::shared_ptr<void> hold(int& counter);

  Behaviour behaviour;
  MisuseLog& misuse;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<ncclComm>> comms;
  std::map<int, int> arrived;  // by clique
  std::map<std::thread::id, OpenGroup> open_groups;
  std::set<std::tuple<int, int, int, bool>> connectors;  // clique, from, to, of the sender
  std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<Message>>> channels;  // by clique, from, to
  std::map<std::pair<int, std::uint64_t>, Reduction> reductions;
  std::map<const void*, std::size_t> registered;  // by ncclCommRegister: bytes by address
  std::map<const void*, std::size_t> exportable;  // from ncclMemAlloc: bytes by address
  std::deque<std::vector<std::byte>> allocated;   // that memory
  std::map<int, Environment> environments;        // by rank
  std::size_t groups = 0;
  int cliques = 0;
};

}  // namespace gradring::tests
