// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "kernels/runtime/deadline.h"
#include "train/launch/run_folder.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// Where the ranks of a run find each other if their launcher lends them no folder (torchrun, ranks started by hand): rank 0
/// makes a private one and leaves a link to it under a name that all derive from TORCHELASTIC_RUN_ID and MASTER_PORT; the
/// others follow it. The lock on a RunFolder lives as long as its maker, so a link that a killed run left behind leads
/// nobody astray. Both go with rank 0's object.
class MeetingPlace {
 public:
  /// Rank 0 returns at once; the others when rank 0 has come.
  ///
  /// Errors    comm::Timeout that names rank 0; EnvironmentError if the folder or the link cannot be made.
  MeetingPlace(const WorkerEnvironment& place, Deadline deadline,
               const std::filesystem::path& parent = RunFolder::default_parent());
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  /// A folder that is there for all ranks, for a comm::FileStore.
  const std::filesystem::path& store() const { return store_; }

 private:
  void open();
  bool follow();

  std::filesystem::path link_;
  std::filesystem::path store_;
  std::unique_ptr<RunFolder> folder_;  // rank 0's
};

}  // namespace gradring::train
