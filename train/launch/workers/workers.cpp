// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/host_name.h"
#include "kernels/base/number_list.h"
#include "train/launch/workers/signals.h"
#include "train/options/exit_code.h"

namespace gradring::train {
namespace {

/// The launcher ends workers by these. It forwards SIGUSR1 and SIGUSR2 without that intention: a worker that dies of
/// them has failed.
constexpr int kStoppingSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGKILL};

bool failed_by_itself(const WorkerExit& exit) {
  return exit.failed() && !exit.stopped_by_launcher() && !exit.left_on_request();
}

/// A worker that was asked to end may exit with any code; its error message is still worth a line.
bool worth_a_line(const WorkerExit& exit) {
  return failed_by_itself(exit) && (!exit.was_asked_to_end() || !exit.message.empty());
}

bool same_failure(const WorkerExit& one, const WorkerExit& other) {
  return one.code == other.code && one.signal == other.signal && one.message == other.message;
}

/// " (ranks 1, 3 failed alike)"; empty without ranks.
std::string in_brackets(const std::vector<int>& ranks, const char* how) {
  if (ranks.empty()) return "";
  return fmt::format(" (rank{} {} {})", ranks.size() == 1 ? "" : "s", number_list(ranks), how);
}

std::string line_of(const WorkerExit& exit, int world_size, const std::string& remark) {
  return fmt::format("{}{}{}{}", describe(exit, world_size), remark, exit.message.empty() ? "" : ": ", exit.message);
}

}  // namespace

std::optional<Deadline> earlier(const std::optional<Deadline>& one, const std::optional<Deadline>& other) {
  if (!one || !other) return one ? one : other;
  return one->remaining() < other->remaining() ? one : other;
}

bool WorkerExit::was_asked_to_end() const {
  return std::ranges::any_of(kStoppingSignals, [this](int number) { return sent[static_cast<std::size_t>(number)]; });
}

bool WorkerExit::stopped_by_launcher() const {
  const int number = signal != 0 ? signal : code - 128;
  return std::ranges::count(kStoppingSignals, number) > 0 && sent[static_cast<std::size_t>(number)];
}

bool WorkerExit::left_on_request() const {
  return code == kPreempted && (sent[SIGHUP] || sent[SIGUSR1] || sent[SIGUSR2]);
}

bool WorkerExit::blames_peer() const { return code == kPeerLost || code == kTimeout; }

bool WorkerExit::followed_preemption() const { return code == kPreempted && !was_asked_to_end() && !left_on_request(); }

const WorkerExit* root_cause(std::span<const WorkerExit> exits) {
  const bool peer_lost = std::ranges::any_of(exits, &WorkerExit::blames_peer);
  const bool interrupted = std::ranges::find(exits, exit_code_after(SIGINT), &WorkerExit::code) != exits.end();
  const auto may_be_cause = [&](const WorkerExit& exit) {
    return failed_by_itself(exit) && !((peer_lost || interrupted) && exit.followed_preemption());
  };
  const auto has_own_cause = [&](const WorkerExit& exit) { return may_be_cause(exit) && !exit.blames_peer(); };
  auto it = std::ranges::find_if(exits, has_own_cause);
  if (it == exits.end()) it = std::ranges::find_if(exits, may_be_cause);
  return it == exits.end() ? nullptr : &*it;
}

std::string describe(const WorkerExit& exit, int world_size) {
  const std::string end = exit.signal != 0
                              ? fmt::format("was killed by signal {} ({})", exit.signal, signal_name(exit.signal))
                              : fmt::format("exited with code {}{}", exit.code, own_meaning_of(exit.code));
  const std::string process = exit.pid > 0 ? fmt::format("pid {} ", exit.pid) : "";  // unknown of a lost node
  return fmt::format("rank {} of {} ({}on {}) {}", exit.rank, world_size, process,
                     exit.host.empty() ? host_name() : exit.host, end);
}

std::vector<std::string> failure_lines(std::span<const WorkerExit> exits, const std::string& program, int world_size) {
  const WorkerExit* cause = root_cause(exits);
  if (cause == nullptr) return {};
  // Without a program all ranks fail alike.
  if (cause->exec_error != 0) return {fmt::format("cannot run '{}': {}", program, std::strerror(cause->exec_error))};
  std::vector<int> alike, lost_a_peer;
  std::vector<std::string> lines = {line_of(*cause, world_size, world_size > 1 ? ", the first to fail" : "")};
  for (const WorkerExit& exit : exits) {
    if (&exit == cause || !worth_a_line(exit)) continue;
    if (same_failure(exit, *cause))
      alike.push_back(exit.rank);
    else if (exit.blames_peer())
      lost_a_peer.push_back(exit.rank);
    else
      lines.push_back("then " + line_of(exit, world_size, ""));
  }
  lines.front() += in_brackets(alike, "failed alike") + in_brackets(lost_a_peer, "lost a peer");
  return lines;
}

}  // namespace gradring::train
