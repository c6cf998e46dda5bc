// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "kernels/base/processors.h"
#include "train/launch/nodes/launch_nodes.h"
#include "train/launch/options/parse_launch.h"
#include "train/launch/workers/attempt.h"
#include "train/launch/workers/host.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_group.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

constexpr auto kDrainTimeoutWhenStopped = std::chrono::seconds(2);

int launch_one_node(const LaunchOptions& options, Terminals& terminals, const Logger& log) {
  WorkerGroup workers(options, terminals);
  if (workers.logs().is_temporary()) log("output goes to " + workers.logs().path().string());
  return run_attempts(options, workers, log);
}

int print_error(const std::exception& error, ExitCode code) {
  print_to_stderr(fmt::format("gradring launch: {}\n", error.what()));
  return code;
}

}  // namespace

int launch(const LaunchOptions& options) {
  check(!options.program.empty(), "launch needs a program to run");
  check(options.nproc_per_node > 0, "launch needs at least one worker");
  Terminals terminals;
  const Logger log = [&](const std::string& line) {
    terminals.err.write(printable(fmt::format("{}: {}\n", options.title, line), "\n\t"));
  };
  terminals.out.on_failure = [&](int error) {
    log(fmt::format("cannot write standard output: {}; the run continues, the output of its workers is dropped",
                    std::strerror(error)));
  };
  if (is_wildcard_address(options.master_addr))
    log(fmt::format(
        "warning: the master address {} (--master-addr, --rdzv-endpoint) is every interface of this host: a program "
        "that listens there is open to the network, and other nodes cannot connect to it; expected an address of node "
        "0 that the other nodes can reach, or 127.0.0.1 on one machine",
        options.master_addr));
  bool logs_complete = true;
  terminals.on_log_failure = [&](const std::filesystem::path& file, int error) {
    if (std::exchange(logs_complete, false))
      log(
          fmt::format("cannot write {}: {}; the run continues, further output to such logs is lost: free space there, "
                      "or choose another --log-dir",
                      file.string(), std::strerror(error)));
  };
  const int code =
      options.nnodes.most > 1 ? launch_nodes(options, terminals, log) : launch_one_node(options, terminals, log);
  // A paused reader delays the end of the launcher, as of any program, unless a signal ended the run.
  const bool stopped = code == exit_code_after(SIGINT) || code == exit_code_after(SIGQUIT) || code == kPreempted;
  const auto deadline = stopped ? std::optional(Deadline::after(kDrainTimeoutWhenStopped)) : std::nullopt;
  terminals.out.finish(deadline);
  terminals.err.finish(deadline);
  return code == kOk && !logs_complete ? kEnvironment : code;
}

int spawn_ranks(int nprocs, const std::vector<std::string>& arguments, const std::string& program) {
  return launch({.program = program.empty() ? own_program() : program,
                 .arguments = arguments,
                 .nproc_per_node = nprocs,
                 .title = "gradring"});
}

std::string own_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  char path[PATH_MAX];
  const ssize_t length = ::readlink(kSelf, path, sizeof(path));
  const std::string program(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  // If the file was deleted or replaced, the link still opens the program, but its text does not.
  return ::access(program.c_str(), X_OK) == 0 ? program : kSelf;
}

int launch_main(std::span<const std::string> args) {
  try {
    const ParsedLaunch parsed = parse_launch(args, {.lookup = system_variable,
                                                    .cores = usable_processors(),
                                                    .gpus = visible_gpus(system_variable),
                                                    .own_program = own_program(),
                                                    .random_run_id = random_run_id});
    if (!parsed.help) return launch(parsed.options);
  } catch (const InvalidArgument& error) {
    return print_error(error, kUsage);
  } catch (const std::exception& error) {  // no folder, process or memory
    return print_error(error, kEnvironment);
  }
  print_shown(launch_help());  // main() reports a failure to write it
  return kOk;
}

}  // namespace gradring::train
