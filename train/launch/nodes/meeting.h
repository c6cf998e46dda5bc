// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport/tcp/handshake.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/error.h"
#include "train/launch/nodes/node_link.h"

namespace gradring::train {

/// How agents find each other: the leader (node 0) listens, the others dial it. Both sides prove that they know the run's
/// secret before anything else is read, kept or believed (comm/transport/tcp/handshake.h).

/// The run's secret: of GRADRING_TOKEN where it is set on all nodes, else of the run id, which keeps runs apart but no
/// stranger who knows it.
comm::tcp::RunToken run_secret(const std::string& token, const std::string& run_id);

/// Somebody else listens where this one wants to: a leader of the same run, or a stranger.
struct DoorTaken : DeviceError {
  using DeviceError::DeviceError;
};

/// The leader's door. A look at it every 20 ms at most, in which a few are answered, so that a crowd of strangers costs the
/// workers beside this agent little; a node that comes waits for two looks.
class Doorway {
 public:
  /// Listens at every address that `host` has and that is this machine's.
  ///
  /// Errors    DeviceError that lists each address tried and why, if none is; DoorTaken if somebody else listens at one.
  Doorway(const std::string& host, int port, const comm::tcp::Identity& self);

  /// What to poll for reading; nothing until next_look().
  std::vector<int> fds() const;
  /// When to call admit() at the latest, whatever poll says; none if fds() says it.
  const std::optional<Deadline>& next_look() const { return next_look_; }
  /// Goes on with whoever stands at the door, unless it is too early to look. Returns those who have proven themselves. Does
  /// not wait.
  std::list<NodeLink> admit();

 private:
  using Stranger = std::list<comm::tcp::Handshake>::iterator;

  void answer(const UniqueFd& listener, std::list<NodeLink>& admitted);
  /// Returns the next one.
  Stranger go_on_with(Stranger stranger, std::list<NodeLink>& admitted);

  comm::tcp::Identity self_;
  std::vector<UniqueFd> listeners_;
  std::list<comm::tcp::Handshake> strangers_;
  std::optional<Deadline> next_look_;
};

/// "host:1", "[::1]:1"
std::string endpoint_text(const std::string& host, int port);

/// Dials, again and again, until the leader answers and both have proven themselves, or the deadline passes: then nothing,
/// and `tried` lists each address tried last, and why. Looks the name up anew each time: pods get addresses late.
///
/// Errors    InvalidArgument at once if whoever listens there belongs to another run.
std::optional<NodeLink> dial_leader(const std::string& host, int port, const comm::tcp::Identity& self,
                                    Deadline deadline, std::string& tried);

}  // namespace gradring::train
