// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <unistd.h>

#include <bitset>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/descriptor_limit.h"
#include "kernels/base/file.h"
#include "train/launch/logs/worker_output.h"
#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/reaper.h"
#include "train/launch/workers/run_folder.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_environment.h"
#include "train/launch/workers/workers.h"
#include "train/options/terminal.h"

namespace gradring::train {

struct WorkerCommand {
  std::string program;  ///< a path, or a name looked up in PATH
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< "NAME=value", complete
  int out = -1, err = -1;                ///< its stdout and stderr; -1: inherited
};

/// What the launcher has changed of its own process, and workers do not inherit.
struct ProcessState {
  SignalScope signals;
  DescriptorLimit descriptors{};
  UniqueFd control_group{};  ///< make_control_group(), which workers enter

  /// Between fork and exec.
  void restore_in_child() const {
    if (control_group) static_cast<void>(!::write(control_group.get(), "0", 1));
    signals.restore_in_child();
    descriptors.restore_in_child();
  }
};

/// One worker: a child process that leads its own session and process group. The kernel kills it when the launching
/// thread ends. The owner waits until fd() is readable or ended() holds, then calls reap().
class WorkerProcess {
 public:
  /// Starts the process without waiting for its program to begin; reap() tells whether that could be executed. The
  /// reaper knows the new group before the program begins.
  ///
  /// Errors    DeviceError if the system runs out of processes or files.
  static WorkerProcess start(int rank, const WorkerCommand& command, const ProcessState& state, Reaper& reaper);

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  /// Until reap().
  bool running() const { return running_; }
  /// A pidfd, readable once the process has ended; -1 after reap(), and where there are none: in an old kernel, or
  /// behind a container's seccomp filter.
  int fd() const { return end_.get(); }
  bool must_be_polled() const { return running_ && !end_; }
  /// Whether the process has ended. Call only while running().
  bool ended() const noexcept;

  /// Sends a signal to its process group.
  void send(int number) noexcept;
  /// Collects the exit status and kills the rest of the group. Call once, when the process has ended.
  WorkerExit reap() noexcept;

 private:
  int rank_ = 0;
  pid_t pid_ = -1;
  bool running_ = false;
  UniqueFd end_;
  UniqueFd exec_error_;  ///< pipe that holds errno if the program could not be executed
  std::bitset<NSIG> sent_;
};

/// The workers of this node as processes, with their run folder and their reaper: the mechanism of the launcher,
/// without its policy. The destructor kills running workers. If a worker fails or is asked to end, all that the workers
/// of the attempt have started is killed with the last of them; otherwise their daemons go on.
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
  /// Also returns as soon as one of these events happens; descriptor -1 is ignored.
  WorkerEvents wait(std::optional<Deadline> deadline, const std::vector<pollfd>& others);
  void send(int number) noexcept override;
  void suspend() override;
  std::optional<std::int64_t> furthest_step() const override;

  /// The ranks of the workers of later attempts, and the address at which workers of other nodes reach them. Initially
  /// this node is the only one.
  void assign(const NodeAssignment& assignment, const std::string& address) {
    assignment_ = assignment;
    address_ = address;
  }
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
  ProcessState state_;
  Reaper reaper_;  // before the folder, which it removes if the launcher is killed
  RunFolder folder_;
  LogFolder logs_;
  NodeAssignment assignment_;
  std::string address_;
  int prepared_for_ = 0;
  bool leaves_daemons_ = true;  // no worker of this attempt has failed or was asked to end
  std::vector<Worker> workers_;
};

}  // namespace gradring::train
