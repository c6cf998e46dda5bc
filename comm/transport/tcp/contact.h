// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/transport/tcp/mesh.h"
#include "comm/transport/tcp/socket_address.h"

namespace gradring::comm::tcp {

/// What a rank tells the others through the store about itself.
struct Contact {
  int version = 1;
  int world_size = 1;
  std::string host;  ///< numeric
  std::uint16_t port = 0;
  int pid = 0;
  std::string token = "-";  ///< of the run, if it is rank 0's
  std::string node;         ///< the host's name, for messages only

  std::string to_text() const;
  /// Errors    DeviceError if the text is not what to_text writes.
  static Contact parse(const std::string& text);
  /// "process 4711 on node3"
  std::string description() const;
};

/// This process, as a rank that listens there. Rank 0 draws the run's token.
Contact contact_of_this_process(const TcpSpec& spec, const SocketAddress& listening);

/// The contacts of all ranks, by rank, as they come.
///
/// Errors    Timeout that names all ranks that did not come; Desync if one has another world size or version.
std::vector<Contact> exchange_contacts(Store& store, const TcpSpec& spec, const Contact& mine, Deadline deadline);

}  // namespace gradring::comm::tcp
