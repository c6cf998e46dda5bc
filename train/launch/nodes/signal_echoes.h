// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <set>

namespace gradring::train {

/// One Ctrl-C may reach the agents of all nodes, as under srun or in one terminal: told from two, the second of which kills.
/// A signal that another agent has had a moment ago, and this one not, is the same.
class SignalEchoes {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whether the signal that has come to a node's agent is one that no other has brought before.
  bool is_new(int number, int node, Clock::time_point now = Clock::now());

 private:
  struct Call {
    Clock::time_point when;
    std::set<int> nodes;  ///< that have had it
  };
  std::map<int, Call> latest_;  ///< by number
};

}  // namespace gradring::train
