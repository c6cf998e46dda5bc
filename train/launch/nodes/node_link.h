// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// A connection between two agents that have proven themselves to each other. A host that falls silent is noticed by the
/// kernel within about kSilence.
class NodeLink {
 public:
  static constexpr int kSilenceSeconds = 6;

  explicit NodeLink(UniqueFd socket);

  /// Readable when there is something to receive; -1 once the connection is over.
  int fd() const { return socket_.get(); }
  bool open() const { return bool(socket_); }
  /// Why it is over, for people.
  const std::string& reason() const { return reason_; }
  /// The numeric address by which the peer sees this host.
  std::string own_address() const;

  /// Sends a message whole, or closes the link: a peer that takes nothing for seconds is gone.
  void send(const nlohmann::json& message);
  /// What has come since the last call; does not wait. A peer that sends what is no message, or too long a one, is cut off.
  std::vector<nlohmann::json> receive();
  void close(const std::string& reason);

 private:
  UniqueFd socket_;
  std::string incoming_;
  std::string reason_;
};

}  // namespace gradring::train
