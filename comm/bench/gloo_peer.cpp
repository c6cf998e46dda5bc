// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/gloo_peer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "kernels/base/error.h"

namespace gradring::comm::bench {
namespace {

ChildCommand command_of(const ProcessGroup& group, const GlooPeerSpec& spec) {
  const double seconds = std::chrono::duration<double>(spec.timeout).count();
  ChildCommand command = rank_in_python(spec.python, kGlooScript, group.rank(), group.world_size());
  command.variables.emplace_back("GRADRING_GLOO_STORE", spec.store_file);
  command.variables.emplace_back("GRADRING_GLOO_TIMEOUT", fmt::format("{}", seconds));
  // The host name may not resolve; the loopback interface always exists.
  if (!std::getenv("GLOO_SOCKET_IFNAME")) command.variables.emplace_back("GLOO_SOCKET_IFNAME", "lo");
  return command;
}

}  // namespace

ChildCommand rank_in_python(const std::string& python, const char* script, int rank, int world_size) {
  return {.words = {python, "-c", script},
          .variables = {{"RANK", std::to_string(rank)},
                        {"WORLD_SIZE", std::to_string(world_size)},
                        {"OMP_NUM_THREADS", "1"}},
          .keep_stderr = true};
}

GlooPeer::GlooPeer(ProcessGroup& group, const GlooPeerSpec& spec)
    : group_(group), timeout_(spec.timeout), python_(command_of(group, spec)) {
  const std::string greeting = python_.read_line(Deadline::after(timeout_));
  constexpr std::string_view kReady = "ready ";
  check<DeviceError>(greeting.starts_with(kReady),
                     [&] { return "the gloo process did not start: found '" + greeting + "', expected 'ready NAME'"; });
  name_ = greeting.substr(kReady.size());
  group_.barrier_on_host();
}

std::vector<double> GlooPeer::seconds(const std::string& collective, std::size_t bytes,
                                      const Repetitions& repetitions) {
  group_.barrier_on_host();
  python_.write_line(fmt::format("{} {} {} {} {:d}", collective, bytes, repetitions.warmups, repetitions.iterations,
                                 repetitions.fresh));
  std::istringstream answer(python_.read_line(Deadline::after(timeout_)));
  std::vector<double> mine;
  for (double time = 0; answer >> time;) mine.push_back(time);
  check<DeviceError>(mine.size() == static_cast<std::size_t>(repetitions.iterations), [&] {
    return fmt::format("invalid answer of the gloo process: found {} times, expected {}", mine.size(),
                       repetitions.iterations);
  });
  return slowest_of_all_ranks(group_, mine);
}

}  // namespace gradring::comm::bench
