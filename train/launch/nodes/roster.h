// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/launch/nodes/meeting.h"
#include "train/launch/nodes/message.h"

namespace gradring::train {

/// One node of the run, as the leader knows it.
struct Seat {
  NodeOffer offer{};
  std::optional<NodeLink> link{};  ///< none: the leader's own seat, or nobody sits here
  std::set<int> running{};         ///< ranks that have been started and not been heard of since
  bool leaving = false;            ///< it has asked to go

  bool taken() const { return link.has_value(); }
};

/// Who is here: the seats of a run, the door, and those who have come in and not said yet who they are.
class Roster {
 public:
  Roster(Doorway doorway, const NodeOffer& own);

  /// By node number; the first is the leader's.
  std::vector<Seat>& seats() { return seats_; }
  const std::vector<Seat>& seats() const { return seats_; }
  /// How many nodes are here, the leader's among them.
  int present() const;
  /// "node 1, node 3"
  std::string missing() const;
  /// What to poll for reading.
  std::vector<int> fds() const;
  /// When to call admit() at the latest, whatever poll says, if ever.
  const std::optional<Deadline>& next_look() const { return doorway_.next_look(); }
  /// Lets in and seats whoever has come; refuses, with the reason, whoever does not fit. Returns whether somebody sat down.
  bool admit();
  void tell_all(const nlohmann::json& message);

 private:
  bool seat(NodeLink link, NodeOffer offer);
  Seat* free_seat();

  NodeOffer own_;
  Doorway doorway_;
  std::list<NodeLink> newcomers_;
  std::vector<Seat> seats_;
};

}  // namespace gradring::train
