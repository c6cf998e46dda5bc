// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport/nccl/nccl_api.h"

namespace gradring::tests {

/// NCCL's entry points over threads of one process, for streams of the CPU. It keeps to what NCCL promises, and to nothing
/// more: a group does nothing before its end and is still in progress after it; its sends and receives happen in stream
/// order, all at once, and wait for their peers; an abort ends what waits, quietly.
///
/// A rank whose messages do not fit waits for ever, as on a GPU. What a caller must not do is noted (`misuse`).
///
/// Threads   safe. Streams may hold its work after it is gone.
class FakeNccl {
 public:
  struct Behaviour {
    int version = NCCL_VERSION_CODE;
    int polls_in_progress = 2;     ///< how often a call that was accepted is not done yet
    int init_fails_for = -1;       ///< a rank
    int no_memory_for = -1;        ///< a rank
    int no_registration_for = -1;  ///< a rank
    bool aborts_hang = false;      ///< until let_aborts_end
  };
  FakeNccl() : FakeNccl(Behaviour{}) {}
  explicit FakeNccl(const Behaviour& behaviour);
  ~FakeNccl();

  /// The entry points, as one rank calls them.
  comm::nccl::Api api(int rank);

  /// From now on nothing that the rank enqueues ever happens.
  void kill(int rank);
  /// From now on the rank's communicators report an error.
  void fail(int rank, ncclResult_t error);
  void let_aborts_end();

  /// What the callers did that NCCL forbids, and messages that did not fit; in words.
  std::vector<std::string> misuse() const;
  /// How many groups were made so far.
  std::size_t groups() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace gradring::tests
