// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "comm/rendezvous/store.h"

namespace gradring::comm {

/// The store of ranks that are threads of one process.
class MemoryStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace gradring::comm
