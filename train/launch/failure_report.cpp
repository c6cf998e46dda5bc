// SPDX-License-Identifier: Apache-2.0
#include "train/launch/failure_report.h"

#include <fmt/format.h>

#include <cstring>

namespace gradring::train {
namespace {

std::string with_message(std::string line, const WorkerExit& exit) {
  return exit.message.empty() ? line : fmt::format("{}: {}", line, exit.message);
}

/// Who was asked to end may do so with any code; what it has to say about it is worth a line.
bool failed_by_itself(const WorkerExit& exit) {
  return exit.failed() && !exit.stopped_by_launcher() && !exit.left_on_request() &&
         (!exit.was_asked_to_end() || !exit.message.empty());
}

/// The same mistake, made by every rank: once is enough.
bool says_the_same(const WorkerExit& exit, const WorkerExit& cause) {
  return !exit.message.empty() && exit.message == cause.message;
}

}  // namespace

std::vector<std::string> failure_lines(std::span<const WorkerExit> exits, const std::string& program, int world_size) {
  const WorkerExit* cause = root_cause(exits);
  if (cause == nullptr) return {};
  // All fail alike if there is nothing to run.
  if (cause->exec_error != 0) return {fmt::format("cannot run '{}': {}", program, std::strerror(cause->exec_error))};
  std::vector<std::string> lines = {
      with_message(describe(*cause, world_size) + (world_size > 1 ? ", the first to fail" : ""), *cause)};
  for (const WorkerExit& exit : exits)
    if (&exit != cause && failed_by_itself(exit) && !says_the_same(exit, *cause))
      lines.push_back(with_message("then " + describe(exit, world_size), exit));
  return lines;
}

}  // namespace gradring::train
