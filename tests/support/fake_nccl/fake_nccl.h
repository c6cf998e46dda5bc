// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport/nccl/nccl_api.h"

namespace gradring::tests {

/// A fake NCCL for ranks that are threads and for CPU streams. It guarantees only what NCCL guarantees: a group does
/// nothing before its end and may still be in progress afterwards; its sends and receives run concurrently in stream
/// order and wait for their peers; an abort ends waiting operations without an error.
///
/// A rank whose messages do not match waits forever, as on a GPU. Forbidden calls are recorded (`misuse`).
///
/// Threads   safe. Streams may hold its work after its destruction.
class FakeNccl {
 public:
  struct Behaviour {
    int version = NCCL_VERSION_CODE;
    int polls_in_progress = 2;     ///< how often an accepted call reports ncclInProgress
    int init_fails_for = -1;       ///< rank
    int no_memory_for = -1;        ///< rank
    int no_registration_for = -1;  ///< rank
    bool aborts_hang = false;      ///< until let_aborts_end
  };
  FakeNccl() : FakeNccl(Behaviour{}) {}
  explicit FakeNccl(const Behaviour& behaviour);
  ~FakeNccl();

  /// The functions for one rank.
  comm::nccl::Api api(int rank);

  /// The rank's operations do not run from now on.
  void kill(int rank);
  /// The rank's communicators report `error` from now on.
  void fail(int rank, ncclResult_t error);
  void let_aborts_end();

  /// Descriptions of forbidden calls and of mismatched messages.
  std::vector<std::string> misuse() const;
  /// The number of groups so far.
  std::size_t groups() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace gradring::tests
