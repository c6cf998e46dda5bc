// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>

#include "comm/rendezvous/store.h"
#include "comm/rendezvous/unix_store/wire.h"

namespace gradring::comm {

/// A store that a UnixStoreServer on this host keeps. Every call is a connection of its own, so threads do not wait for
/// each other, and a forked child may use its parent's. If the server is not there yet, calls wait for it.
///
/// Errors    also CommError if the server ended, and Timeout if it does not answer within `patience` (wait: its
///           deadline).
class UnixStore final : public Store {
 public:
  explicit UnixStore(std::filesystem::path path, std::chrono::nanoseconds patience = std::chrono::seconds(30));

  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;

 private:
  wire::Answer ask(const wire::Request& request, Deadline deadline) const;

  std::filesystem::path path_;
  std::chrono::nanoseconds patience_;
};

}  // namespace gradring::comm
