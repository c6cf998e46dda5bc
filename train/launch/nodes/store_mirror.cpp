// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/store_mirror.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "comm/rendezvous/store.h"
#include "kernels/runtime/error.h"
#include "train/launch/nodes/message.h"
#include "train/launch/worker_files.h"

namespace gradring::train {
namespace {

bool is_entry(const std::string& name) { return name.starts_with("key-") && name.find('/') == std::string::npos; }

}  // namespace

StoreMirror::StoreMirror(std::filesystem::path folder, std::size_t most_entries)
    : folder_(std::move(folder)), most_entries_(most_entries), watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const bool watched = watch_ && ::inotify_add_watch(watch_.get(), folder_.c_str(), IN_MOVED_TO) >= 0;
  check<DeviceError>(watched, std::string("cannot watch the workers' store: ") + std::strerror(errno));
}

std::vector<std::pair<std::string, std::string>> StoreMirror::changes() {
  alignas(inotify_event) char buffer[16 * 1024];
  std::set<std::string> names;
  for (ssize_t size = 0; (size = ::read(watch_.get(), buffer, sizeof buffer)) > 0;)
    for (const char* at = buffer; at < buffer + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      if (event->len > 0) names.insert(event->name);
      at += sizeof(inotify_event) + event->len;
    }
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& name : names) {
    if (!is_entry(name)) continue;
    auto value = read_regular_file(folder_ / name, comm::Store::kMaxValueBytes);
    if (!value || (known_.contains(name) && known_[name] == *value)) continue;
    known_[name] = *value;
    entries.emplace_back(name, std::move(*value));
  }
  return entries;
}

void StoreMirror::put(const std::string& name, const std::string& value) {
  if (!is_entry(name)) return;
  if (known_.size() >= most_entries_ && !known_.contains(name))
    throw MessageError(fmt::format("it sent a new key, but the workers' store is full with {} keys", known_.size()));
  known_[name] = value;
  const auto draft = folder_ / ("new-" + name);
  std::ofstream(draft, std::ios::binary | std::ios::trunc) << value << std::flush;
  std::error_code ignored;
  std::filesystem::rename(draft, folder_ / name, ignored);
}

}  // namespace gradring::train
