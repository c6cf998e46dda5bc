// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"
#include "tests/comm/support/transport_kind.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// Runs body(group) on `world` threads, each a rank. Rethrows the error of the lowest rank that threw.
void run_as_threads(int world, const std::function<void(comm::ProcessGroup&)>& body,
                    std::chrono::nanoseconds timeout = std::chrono::seconds(60));

/// The same, but returns what each rank threw; null where it threw nothing.
std::vector<std::exception_ptr> errors_of_threads(int world, const std::function<void(comm::ProcessGroup&)>& body,
                                                  std::chrono::nanoseconds timeout);

/// The same for ranks that create their group with join(rank).
using Join = std::function<std::unique_ptr<comm::ProcessGroup>(int rank)>;
std::vector<std::exception_ptr> errors_of_threads(int world, const std::function<void(comm::ProcessGroup&)>& body,
                                                  const Join& join);

/// How one rank's process ended: the message of its error ("" if none), or a signal.
struct Outcome {
  std::string kind;  ///< "ok", "PeerLost", "Timeout", "Desync", "Error", "signal"
  std::string message;
  int peer = -1;
};

/// Ranks that are forked processes. The destructor kills and reaps those that still run.
class Processes {
 public:
  using Body = std::function<void(int rank, comm::Store& store)>;

  /// Starts `world` processes that run body(rank, store) with a shared fresh store.
  Processes(int world, const Body& body);
  ~Processes();

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  comm::Store& store() { return *store_; }
  /// Waits until the rank has ended, for at most a minute.
  Outcome outcome(int rank);

 private:
  TempFolder folder_;
  std::unique_ptr<comm::Store> store_;
  std::vector<pid_t> pids_;
  std::vector<int> pipes_;  // each rank's report
};

/// Runs body(group) on `world` processes; fails the test unless all succeed.
void run_as_processes(int world, const std::function<void(comm::ProcessGroup&)>& body,
                      TransportKind medium = TransportKind::shared_memory);

/// Throws unless the condition holds. For child processes, where results of gtest's macros are lost.
void require(bool condition, const char* message);

}  // namespace gradring::tests
