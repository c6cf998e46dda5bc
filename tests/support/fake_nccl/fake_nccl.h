// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "comm/transports/nccl/nccl_api.h"
#include "tests/support/fake_nccl/misuse_log.h"

namespace gradring::tests {

/// A fake NCCL for ranks that are threads with a FakeGpu each. It guarantees only what NCCL 2.28 guarantees: a group
/// does nothing before its end and is in progress afterwards; its sends and receives run concurrently in stream order
/// and wait for their peers; the first group with a peer waits for that peer; a revoke or an abort ends operations
/// without an error; a communicator is freed only when graphs and peers allow it.
///
/// It refuses what NCCL refuses, with a message in ncclGetLastError, hangs where NCCL hangs, and notes as misuse what
/// NCCL does not notice (rules.h).
///
/// Threads   safe. Streams may hold its work after its destruction; the log must outlive that.
class FakeNccl {
 public:
  struct Behaviour {
    int version = NCCL_VERSION_CODE;
    int polls_in_progress = 2;  ///< how often an accepted call reports ncclInProgress
    int init_fails_for = -1;    ///< rank
    bool aborts_hang = false;   ///< until the rank is killed
    bool revokes_hang = false;  ///< likewise
  };
  FakeNccl(const Behaviour& behaviour, MisuseLog& misuse);
  ~FakeNccl();

  /// The functions for one rank.
  comm::nccl::Api api(int rank);

  /// NCCL functions that the transport does not use, because they lead to mixed registration. Memory stays until the
  /// fake and its work on streams are gone.
  void* mem_alloc(std::size_t bytes);
  void comm_register(const void* data, std::size_t bytes);
  /// The rank's process sets a variable. NCCL reads it when the rank first initializes NCCL.
  void set_environment(int rank, const std::string& name, const std::string& value);

  /// The rank's process ends: its operations do not run, and no peer waits for its threads.
  void kill(int rank);
  /// The rank's process stops: its operations do not run, and its calls do not return, until it continues.
  void stop(int rank);
  void resume(int rank);
  /// Returns when the rank's process runs.
  void wait_while_stopped(int rank);
  /// The rank's communicators report `error` from now on.
  void fail(int rank, ncclResult_t error);

  /// The number of groups so far.
  std::size_t groups() const;

  struct State;

 private:
  void change(int rank, const std::function<void(ncclComm&)>& change);

  std::shared_ptr<State> state_;
};

}  // namespace gradring::tests
