// SPDX-License-Identifier: Apache-2.0
#include "train/setup/meeting_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "comm/error.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kNap(5);

std::string link_name(const WorkerEnvironment& place) {
  const std::string run = fmt::format("{}:{}:{}", place.run_id, place.master_port, place.restart_count);
  return fmt::format("gradring-meet-{}-{:016x}", ::getuid(), std::hash<std::string>()(run));
}

}  // namespace

MeetingPlace::MeetingPlace(const WorkerEnvironment& place, Deadline deadline, const fs::path& parent)
    : link_(parent / link_name(place)) {
  if (place.rank == 0) {
    folder_ = std::make_unique<RunFolder>(parent);
    open();
    return;
  }
  while (!follow()) {
    if (deadline.passed())
      throw comm::Timeout({.rank = place.rank, .peer = 0, .operation = "join"},
                          fmt::format("rank {} of {} waited in vain for rank 0: start it on this machine with the same "
                                      "MASTER_PORT and TORCHELASTIC_RUN_ID, or raise --timeout",
                                      place.rank, place.world_size));
    std::this_thread::sleep_for(kNap);
  }
}

MeetingPlace::~MeetingPlace() {
  std::error_code ignored;
  if (folder_ && fs::read_symlink(link_, ignored) == folder_->path()) fs::remove(link_, ignored);
}

void MeetingPlace::open() {
  store_ = folder_->store();
  const fs::path draft = folder_->path() / "link";
  std::error_code error;
  fs::create_symlink(folder_->path(), draft, error);
  if (!error) fs::rename(draft, link_, error);  // takes the place of one that a killed run left
  if (error)
    throw EnvironmentError("the ranks cannot meet at " + link_.string() + ": " + error.message() +
                           "; remove it, or start them by gradring launch");
}

bool MeetingPlace::follow() {
  std::error_code error;
  const fs::path folder = fs::read_symlink(link_, error);
  if (error || !RunFolder::is_held(folder)) return false;
  store_ = folder / "store";
  return true;
}

}  // namespace gradring::train
