// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/launch/guard.h"
#include "train/launch/launcher.h"
#include "train/launch/logs/log_folder.h"
#include "train/launch/logs/terminal.h"
#include "train/launch/node_place.h"
#include "train/launch/run_folder.h"
#include "train/launch/signal_scope.h"
#include "train/launch/worker_process.h"
#include "train/launch/workers.h"

namespace gradring::train {

/// The workers as processes of this machine, with their folders and their guard: the mechanism of the launcher, without
/// its policy. When it goes, whatever still runs is killed.
class WorkerGroup final : public Workers {
 public:
  /// Starts the guard and no worker yet. The terminals must outlive it.
  ///
  /// Errors    DeviceError if the system has no more processes, files or space to give.
  WorkerGroup(const LaunchOptions& options, Terminals& terminals);
  ~WorkerGroup() override;

  void start(int attempt) override;
  bool running() const override;
  std::string running_names() const override;
  int world_size() const override { return place_.world_size; }
  WorkerEvents wait(std::optional<Deadline> deadline) override { return wait(deadline, {}); }
  /// The same, and returns as soon as one of these descriptors is readable (-1: none).
  WorkerEvents wait(std::optional<Deadline> deadline, const std::vector<int>& others);
  void send(int number) noexcept override;
  void suspend() override;
  std::optional<std::int64_t> furthest_step() const override;

  /// Where the workers of later attempts stand. At first: this node is the only one.
  void set_place(const NodePlace& place) { place_ = place; }
  /// The address by which workers of other nodes reach those here; empty on one node.
  void set_address(const std::string& address) { address_ = address; }
  const std::string& address() const { return address_; }
  /// Makes the folders ready for an attempt, which start() does, too, if nobody has.
  void prepare(int attempt);
  /// By which the workers here meet.
  std::filesystem::path store() const { return folder_.store(); }
  /// Where the run's output is kept.
  const LogFolder& logs() const { return logs_; }

 private:
  struct Worker {
    WorkerProcess process;
    OutputStream out, err;
    std::filesystem::path error_file;
  };

  void start_worker(int local_rank, int attempt);
  /// For the destructor and a start that fails: takes no memory, reads no error files, and does not wait for what the
  /// kernel holds on to.
  void kill_all() noexcept;
  WorkerExit reap(Worker& worker);

  const LaunchOptions& options_;
  Terminals& terminals_;
  SignalScope signals_;
  RunFolder folder_;
  Guard guard_;  // at once: a launcher that is killed before leaves the folder to the next one
  LogFolder logs_;
  NodePlace place_;
  std::string address_;
  int prepared_for_ = 0;
  std::vector<Worker> workers_;
};

}  // namespace gradring::train
