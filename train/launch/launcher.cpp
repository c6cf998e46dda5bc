// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <optional>

#include "kernels/runtime/error.h"
#include "train/launch/attempts.h"
#include "train/launch/exit_code.h"
#include "train/launch/nodes/launch_nodes.h"
#include "train/launch/signal_name.h"
#include "train/launch/worker_group.h"

namespace gradring::train {
namespace {

constexpr auto kPatienceWhenStopped = std::chrono::seconds(2);

int launch_here(const LaunchOptions& options, Terminals& terminals, const Say& say) {
  WorkerGroup workers(options, terminals);
  if (workers.logs().is_surprise()) say("output goes to " + workers.logs().path().string());
  return run_attempts(options, workers, say);
}

}  // namespace

int launch(const LaunchOptions& options) {
  check(!options.program.empty(), "launch needs a program to run");
  check(options.nproc_per_node > 0, "launch needs at least one worker");
  Terminals terminals;
  const Say say = [&](const std::string& line) { terminals.err.write(fmt::format("{}: {}\n", options.title, line)); };
  terminals.out.on_failure = [&](int error) {
    say(fmt::format("cannot write standard output: {}; the run goes on, what its workers write there is dropped",
                    std::strerror(error)));
  };
  const int code =
      options.nnodes.most > 1 ? launch_nodes(options, terminals, say) : launch_here(options, terminals, say);
  // A reader that pauses is waited for, as any program does at its end, but not by one that was told to stop.
  const bool stopped = code == exit_code_after(SIGINT) || code == exit_code_after(SIGQUIT) || code == kPreempted;
  const auto patience = stopped ? std::optional(Deadline::after(kPatienceWhenStopped)) : std::nullopt;
  terminals.out.finish(patience);
  terminals.err.finish(patience);
  return code;
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
  // Deleted or replaced since: the link still leads to the program, its text does not.
  return ::access(program.c_str(), X_OK) == 0 ? program : kSelf;
}

}  // namespace gradring::train
