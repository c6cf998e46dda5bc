// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/launch/launcher.h"
#include "train/launch/logs/terminal.h"
#include "train/launch/logs/worker_output.h"
#include "train/launch/reaper.h"
#include "train/launch/run_folder.h"
#include "train/launch/signals.h"
#include "train/launch/worker_process.h"
#include "train/launch/workers.h"

namespace gradring::train {

/// The workers of this node as processes, with their run folder and their reaper: the mechanism of the launcher,
/// without its policy. The destructor kills running workers.
class WorkerGroup final : public Workers {
 public:
  /// Starts the reaper and no worker yet. The terminals must outlive it.
  ///
  /// Errors    DeviceError if the system runs out of processes, files or space.
  WorkerGroup(const LaunchOptions& options, Terminals& terminals);
  ~WorkerGroup() override;

  void start(int attempt) override;
  bool running() const override;
  std::string running_names() const override;
  int world_size() const override { return assignment_.world_size; }
  WorkerEvents wait(std::optional<Deadline> deadline) override { return wait(deadline, {}); }
  /// Also returns as soon as one of these descriptors is readable; -1 is ignored.
  WorkerEvents wait(std::optional<Deadline> deadline, const std::vector<int>& others);
  void send(int number) noexcept override;
  void suspend() override;
  std::optional<std::int64_t> furthest_step() const override;

  /// The ranks of the workers of later attempts. Initially this node is the only one.
  void set_assignment(const NodeAssignment& assignment) { assignment_ = assignment; }
  /// Address at which workers of other nodes reach those of this one; empty on one node.
  void set_address(const std::string& address) { address_ = address; }
  const std::string& address() const { return address_; }
  /// Prepares the folders for an attempt; start() does so unless it was called before.
  void prepare(int attempt);
  const RunFolder& folder() const { return folder_; }
  std::filesystem::path store() const { return folder_.store(); }
  const LogFolder& logs() const { return logs_; }

 private:
  struct Worker {
    WorkerProcess process;
    OutputStream out, err;
    std::filesystem::path error_file;
  };

  void start_worker(int local_rank, int attempt);
  void kill_all() noexcept;
  WorkerExit reap(Worker& worker);
  void reap_adopted();

  const LaunchOptions& options_;
  Terminals& terminals_;
  SignalScope signals_;
  Reaper reaper_;  // before the folder, which it removes if the launcher is killed
  RunFolder folder_;
  LogFolder logs_;
  NodeAssignment assignment_;
  std::string address_;
  int prepared_for_ = 0;
  std::vector<Worker> workers_;
};

}  // namespace gradring::train
