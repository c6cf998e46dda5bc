// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <list>
#include <map>
#include <string>
#include <thread>

#include "comm/rendezvous/unix_store/private_directory.h"
#include "comm/rendezvous/unix_store/wire.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::comm {

/// Keeps the table of a socket store and serves it on one thread, from construction to destruction. The socket lies in
/// a fresh directory that this user alone can enter, and clients of other users are turned away besides. No port is
/// opened.
///
/// A client that dies, sends nonsense or sends nothing costs its own connection and nothing else: a request's length is
/// looked at before any of it is kept, and one that is not complete after a few seconds is dropped.
class UnixStoreServer {
 public:
  /// Errors    DeviceError if the directory or the socket cannot be made.
  explicit UnixStoreServer(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  /// Drops who still waits, and removes the socket and its directory.
  ~UnixStoreServer();

  /// What a UnixStore connects to.
  const std::filesystem::path& path() const { return path_; }

 private:
  struct Connection {
    UniqueFd fd;
    Deadline give_up;           // unless it waits for a key
    std::string incoming = {};  // at most a frame
    std::string outgoing = {};
    std::string awaited = {};  // the key that this client waits for
    bool over = false;
  };

  void serve();
  bool wait_for_events();
  void accept_all();
  void read(Connection& connection);
  void write(Connection& connection);
  void act(Connection& connection, const wire::Request& request);
  void set(const std::string& key, const std::string& value);
  void answer(Connection& connection, const wire::Answer& answer);

  PrivateDirectory directory_;
  std::filesystem::path path_;
  UniqueFd listener_;
  UniqueFd stop_;  // an eventfd, written by the destructor
  std::map<std::string, std::string> values_;
  std::list<Connection> connections_;
  bool out_of_descriptors_ = false;  // at the last attempt to let clients in
  std::thread thread_;               // last: it uses all of the above, and it alone
};

}  // namespace gradring::comm
