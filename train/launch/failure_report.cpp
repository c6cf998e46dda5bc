// SPDX-License-Identifier: Apache-2.0
#include "train/launch/failure_report.h"

#include <fmt/format.h>

#include <cstring>

namespace gradring::train {
namespace {

/// Who was asked to end may do so with any code; what it has to say about it is worth a line.
bool failed_by_itself(const WorkerExit& exit) {
  return exit.failed() && !exit.stopped_by_launcher() && !exit.left_on_request() &&
         (!exit.was_asked_to_end() || !exit.message.empty());
}

bool alike(const WorkerExit& one, const WorkerExit& other) {
  return one.code == other.code && one.signal == other.signal && one.message == other.message;
}

/// " (ranks 1, 3 alike)"; nothing if there are none.
std::string in_brackets(const std::vector<int>& ranks, const char* how) {
  if (ranks.empty()) return "";
  return fmt::format(" (rank{} {} {})", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), how);
}

std::string line_of(const WorkerExit& exit, int world_size, const std::string& what) {
  return fmt::format("{}{}{}{}", describe(exit, world_size), what, exit.message.empty() ? "" : ": ", exit.message);
}

}  // namespace

std::vector<std::string> failure_lines(std::span<const WorkerExit> exits, const std::string& program, int world_size) {
  const WorkerExit* cause = root_cause(exits);
  if (cause == nullptr) return {};
  // All fail alike if there is nothing to run.
  if (cause->exec_error != 0) return {fmt::format("cannot run '{}': {}", program, std::strerror(cause->exec_error))};
  std::vector<int> same, missed_it;
  std::vector<std::string> lines = {line_of(*cause, world_size, world_size > 1 ? ", the first to fail" : "")};
  for (const WorkerExit& exit : exits) {
    if (&exit == cause || !failed_by_itself(exit)) continue;
    if (alike(exit, *cause))
      same.push_back(exit.rank);
    else if (exit.blames_a_peer())
      missed_it.push_back(exit.rank);
    else
      lines.push_back("then " + line_of(exit, world_size, ""));
  }
  lines.front() += in_brackets(same, "alike") + in_brackets(missed_it, "missed a peer");
  return lines;
}

}  // namespace gradring::train
