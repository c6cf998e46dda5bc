// SPDX-License-Identifier: Apache-2.0
#include "train/setup/make_group.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "comm/rendezvous/file_store.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared_memory_group.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// A folder that all ranks of a run derive alike where the launcher lends none (torchrun): private to this user.
fs::path derived_folder(const WorkerEnvironment& place) {
  const std::size_t run = std::hash<std::string>()(place.run_id + ":" + std::to_string(place.master_port));
  const fs::path folder = fs::temp_directory_path() / fmt::format("gradring-{}-{:016x}", ::getuid(), run);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) {
    struct stat info {};
    if (::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::getuid() &&
        (info.st_mode & 0077) == 0)
      return folder;
  }
  throw EnvironmentError("the ranks cannot meet in " + folder.string() +
                         ": it is not a folder of this user's alone; remove it, or start by gradring launch");
}

}  // namespace

std::unique_ptr<comm::ProcessGroup> make_group(const WorkerEnvironment& place, std::chrono::milliseconds timeout) {
  if (place.world_size != place.local_world_size)
    throw EnvironmentError(fmt::format("{} ranks on several machines ({} here): this version trains on one machine only",
                                       place.world_size, place.local_world_size));
  const comm::SharedMemoryGroupOptions options{.rank = place.rank,
                                               .world_size = place.world_size,
                                               .timeout = timeout,
                                               .name = fmt::format("train-{}", place.restart_count)};
  if (place.world_size == 1) {
    comm::MemoryStore store;
    return comm::make_shared_memory_group(store, options);
  }
  comm::FileStore store(place.store_path.empty() ? derived_folder(place) : fs::path(place.store_path));
  return comm::make_shared_memory_group(store, options);
}

}  // namespace gradring::train
