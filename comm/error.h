// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::comm {

/// Where ranks were when they failed to meet: who noticed it, about whom, in which operation and which of its steps.
struct CommPlace {
  int rank = -1;          ///< the rank that throws
  int peer = -1;          ///< the rank that is to blame, as far as this rank can tell; -1 if nobody in particular
  std::string operation;  ///< "all_reduce 17", "allocate", "join", ...
  std::size_t step = 0;   ///< of the operation's schedule, from 0
};

/// The ranks of a group failed to work together. After one the group is broken: every later call on it throws again.
class CommError : public Error {
 public:
  CommError(CommPlace place, const std::string& message) : Error(message), place_(std::move(place)) {}

  const CommPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int peer() const { return place_.peer; }
  const std::string& operation() const { return place_.operation; }
  std::size_t step() const { return place_.step; }

 private:
  CommPlace place_;
};

/// A rank is gone: its process ended, or it left the group while others still needed it.
class PeerLost : public CommError {
 public:
  using CommError::CommError;
};

/// A rank is there, or may yet come, but did not do its part before the deadline.
class Timeout : public CommError {
 public:
  using CommError::CommError;
};

/// Two ranks do different things at the same point: another operation, step, element count or type.
class Desync : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace gradring::comm
