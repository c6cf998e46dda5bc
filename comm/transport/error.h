// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "kernels/base/error.h"

namespace gradring::comm {

/// Where a communication error happened: the rank that detected it, the rank that failed, the operation and its step.
struct OpContext {
  int rank = -1;          ///< the rank that throws
  int peer = -1;          ///< the rank that failed, as far as this rank can tell; -1 if unknown
  std::string operation;  ///< "all_reduce 17", "allocate", "join", ...
  std::size_t step = 0;   ///< of the operation's schedule, from 0
};

/// The ranks of a group failed to work together. The group stays failed: every later call on it throws again.
class CommError : public Error {
 public:
  CommError(OpContext context, const std::string& message) : Error(message), context_(std::move(context)) {}

  const OpContext& context() const { return context_; }
  int rank() const { return context_.rank; }
  int peer() const { return context_.peer; }
  const std::string& operation() const { return context_.operation; }
  std::size_t step() const { return context_.step; }

 private:
  OpContext context_;
};

/// A rank is gone: its process ended, or it left the group while other ranks still needed it.
class PeerLost : public CommError, public ExitsWith<kPeerLost> {
 public:
  using CommError::CommError;
};

/// A rank did not do its part before the deadline.
class Timeout : public CommError, public ExitsWith<kTimeout> {
 public:
  using CommError::CommError;
};

/// Two ranks made different calls: another operation, step, element count or type.
class Desync : public CommError, public ExitsWith<kReplicasDiffer> {
 public:
  using CommError::CommError;
};

}  // namespace gradring::comm
