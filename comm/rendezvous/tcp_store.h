// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/rendezvous/tcp_store_message.h"
#include "comm/sockets/dial.h"
#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm {

struct TcpStoreSpec {
  /// Where rank 0 may be reached; called before each try. A DeviceError is a reason to try again, such as a host name
  /// without an address yet.
  std::function<std::vector<tcp::SocketAddress>()> addresses;
  std::string where;                                                ///< the same for messages: "node2:29500"
  tcp::Identity self;                                               ///< this rank
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);      ///< to connect, and for each answer
  std::function<void(std::chrono::nanoseconds)> pause = sleep_for;  ///< between two tries; what it throws ends them
};

/// The store of a rank that does not serve it: rank 0 does (TcpStoreServer). Each call takes a connection of its own
/// for its time, so a wait does not delay other threads' calls; connections are kept for later calls.
///
/// Threads   safe; calls beyond TcpStoreServer::kMaxConnections wait for one of them to end.
/// Errors    PeerLost that names rank 0 and its address once a connection has ended, or Timeout if rank 0 has not
///           answered, then of every call; DeviceError if the store is full.
class TcpStore final : public Store {
 public:
  /// Connects. What may change is tried again: names without an address, hosts and listeners that are not there yet,
  /// and for a few seconds a listener of another run, which may be an earlier attempt that ends.
  ///
  /// Errors    Timeout that names rank 0 and what was tried last; InvalidArgument if another run's rank listens there.
  explicit TcpStore(const TcpStoreSpec& spec);

  /// The numeric address of this host on the way to rank 0.
  const std::string& own_address() const { return own_address_; }
  /// "10.0.0.2:29500": where rank 0 was reached.
  std::string where() const { return server_.to_string(); }

  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;
  void remove(const std::string& key) override;

 private:
  struct Answer {
    StoreStatus status{};
    std::string value;
    std::int64_t number = 0;
  };

  TcpStore(const TcpStoreSpec& spec, tcp::DialledPeer server);
  /// The value of `key` if it is set within `time`. The answer may come `delay` later.
  std::optional<std::string> wait_once(const std::string& key, std::chrono::nanoseconds time,
                                       std::chrono::nanoseconds delay);
  Answer request(StoreOperation operation, const std::string& key, const std::string& value, std::int64_t number,
                 Deadline deadline);
  Answer exchange(const UniqueFd& connection, const std::string& request, Deadline deadline);
  UniqueFd take_connection(Deadline deadline);
  [[noreturn]] void throw_lost(const std::string& reason);

  const TcpStoreSpec spec_;
  tcp::SocketAddress server_;
  std::string own_address_;

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<UniqueFd> idle_;
  int open_ = 1;        // connections, idle or in use
  std::string reason_;  // why rank 0 is lost; empty while it is not
};

}  // namespace gradring::comm
