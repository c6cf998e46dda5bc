// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/rendezvous/tcp_store_message.h"
#include "comm/sockets/acceptor.h"
#include "comm/sockets/handshake.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm {

/// The store that rank 0 serves to ranks on other machines (TcpStore), and uses itself. One thread serves all: it
/// accepts ranks that prove the token, and reads one request at a time from each connection. What a client costs is
/// limited: kMaxConnections for each rank, one request or answer for each connection, kMaxEntries and kMaxBytes in all.
/// An invalid request closes its connection.
///
/// Threads   safe.
/// Errors    of the constructor: Acceptor's, DeviceError without descriptors. Of the store: DeviceError if it is full.
class TcpStoreServer final : public Store {
 public:
  static constexpr int kMaxConnections = 8;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  /// Set by the server: the numeric address by which ranks of other hosts reach this host. Where no rank has another
  /// than a loopback address, that, once all ranks have connected.
  static constexpr const char* kAddressKey = "store/address";

  /// Listens at all addresses of this host. `self`: rank 0; other ranks connect to it.
  TcpStoreServer(int port, const tcp::Identity& self);
  /// Answers until the other ranks have closed their connections, 1 s at most: when rank 0 gives up, they read why.
  ~TcpStoreServer() override;

  /// "0.0.0.0:29500, [::]:29500"
  std::string where() const { return where_; }

  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;
  void remove(const std::string& key) override;

 private:
  class Client;

  void serve();
  /// The nearest deadline of a waiting client, of the acceptor, and of the end.
  int patience() const;
  void take_in(tcp::Admitted admitted);
  void publish_address(const tcp::Admitted& admitted);
  void advance(Client& client);
  void execute(Client& client);
  void answer_waiting(Client& client);
  void wake();

  MemoryStore entries_{kMaxEntries, kMaxBytes};
  const int world_size_;
  UniqueFd wake_;  // an eventfd: an entry has changed, or the server ends
  tcp::Acceptor acceptor_;
  const std::string where_;
  std::atomic<bool> ends_{false};

  // Of the serving thread.
  std::list<Client> clients_;
  std::vector<bool> has_connected_;  // by rank
  bool has_address_ = false;
  std::optional<Deadline> closes_at_;

  std::thread thread_;
};

}  // namespace gradring::comm
