// SPDX-License-Identifier: Apache-2.0
#include "train/setup/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "train/config/train_config.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& value) {
  throw UsageError(fmt::format("{} is {}, expected at most {} threads: lower it", name, value, kMostThreads));
}

}  // namespace

unsigned threads_of_rank(std::int64_t asked, const WorkerEnvironment& place, const VariableLookup& environment) {
  if (asked > kMostThreads) refuse("--threads", std::to_string(asked));
  if (asked > 0) return static_cast<unsigned>(asked);
  const std::string given = environment("OMP_NUM_THREADS").value_or("");
  unsigned threads = 0;
  const auto [end, failed] = std::from_chars(given.data(), given.data() + given.size(), threads);
  const bool is_number = end == given.data() + given.size();
  if (is_number && (failed == std::errc::result_out_of_range || threads > kMostThreads))
    refuse("OMP_NUM_THREADS", given);
  if (is_number && failed == std::errc() && threads > 0) return threads;
  return static_cast<unsigned>(std::max(1, usable_cores() / place.local_world_size));
}

void pin_to_own_cores(unsigned threads, const WorkerEnvironment& place) {
  cpu_set_t usable, own;
  CPU_ZERO(&usable);
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot ask for the cores that this process may use");
  const unsigned first = static_cast<unsigned>(place.local_rank) * threads;
  unsigned seen = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable)) continue;
    if (seen >= first && seen < first + threads) CPU_SET(core, &own);
    ++seen;
  }
  const unsigned needed = static_cast<unsigned>(place.local_world_size) * threads;
  if (needed > seen)
    throw UsageError(
        fmt::format("--pin needs {} cores ({} a rank), but there are {}: lower --threads, start fewer ranks, or leave "
                    "--pin out",
                    needed, threads, seen));
  if (::sched_setaffinity(0, sizeof own, &own) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot bind this process to cores of its own");
}

}  // namespace gradring::train
