// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/store_mirror.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/rendezvous/file_store.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "train/launch/nodes/message.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

bool is_entry(const std::string& name) { return name.starts_with("key-") && name.find('/') == std::string::npos; }

/// Whether a file that could not be read is an entry: the process has too many open files.
bool is_readable_later(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && fs::file_size(file, error) <= comm::Store::kMaxValueBytes;
}

bool is_missing(const fs::path& file) {
  std::error_code error;
  return fs::symlink_status(file, error).type() == fs::file_type::not_found;
}

}  // namespace

StoreMirror::StoreMirror(std::filesystem::path folder, std::size_t most_entries)
    : folder_(std::move(folder)), most_entries_(most_entries), watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const bool watched = watch_ && ::inotify_add_watch(watch_.get(), folder_.c_str(), IN_MOVED_TO | IN_DELETE) >= 0;
  if (!watched)
    throw DeviceError(std::string("cannot watch the workers' store: ") + std::strerror(errno) +
                      "; raise ulimit -n, or fs.inotify.max_user_instances and max_user_watches with sysctl");
}

void StoreMirror::collect_names() {
  alignas(inotify_event) char buffer[16 * 1024];
  bool missed = false;  // more events than the kernel keeps
  for (ssize_t size = 0; (size = ::read(watch_.get(), buffer, sizeof buffer)) > 0;)
    for (const char* at = buffer; at < buffer + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      missed |= (event->mask & IN_Q_OVERFLOW) != 0;
      if (event->len > 0) changed_.insert(event->name);
      at += sizeof(inotify_event) + event->len;
    }
  if (!missed) return;
  for (const auto& [name, value] : known_) changed_.insert(name);  // it may have been removed
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder_, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    changed_.insert(entry->path().filename());
  if (error) throw DeviceError("cannot list the workers' store: " + error.message() + "; raise ulimit -n");
}

std::vector<std::pair<std::string, std::optional<std::string>>> StoreMirror::changes() {
  collect_names();
  std::vector<std::pair<std::string, std::optional<std::string>>> entries;
  for (const std::string& name : std::exchange(changed_, {})) {
    if (!is_entry(name)) continue;
    const fs::path file = folder_ / name;
    auto value = read_regular_file(file, comm::Store::kMaxValueBytes);
    if (!value && is_readable_later(file)) changed_.insert(name);
    if (value && (!known_.contains(name) || known_[name] != *value)) {
      known_[name] = *value;
      entries.emplace_back(name, std::move(*value));
    } else if (!value && is_missing(file) && known_.erase(name) > 0) {
      entries.emplace_back(name, std::nullopt);
    }
  }
  return entries;
}

void StoreMirror::put(const std::string& name, const std::optional<std::string>& value) {
  if (!is_entry(name)) return;
  if (!value) {
    comm::remove_entry(folder_, name);
    known_.erase(name);
    return;
  }
  if (known_.size() >= most_entries_ && !known_.contains(name))
    throw MessageError(fmt::format("it sent a new key, but the workers' store is full with {} keys", known_.size()));
  comm::write_entry(folder_, name, *value);
  known_[name] = *value;
}

}  // namespace gradring::train
