// SPDX-License-Identifier: Apache-2.0
#include "train/app/program/openmp_wait.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "nn/backend/cpu/onednn.h"

namespace gradring::train {
namespace {

constexpr const char* kPolicy = nn::kOpenmpWaitVariables[0];
/// Set between the two executions.
constexpr const char* kSetByUs = "GRADRING_SET_OMP_WAIT_POLICY";

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

void remove_variables() {
  ::unsetenv(kPolicy);
  ::unsetenv(kSetByUs);
}

}  // namespace

void wait_passively_in_openmp(char** argv) {
  if (is_set(kSetByUs)) {
    nn::read_openmp_environment();
    return remove_variables();
  }
  const bool is_loaders_argument = ::getauxval(AT_BASE) == 0;  // "ld.so gradring": /proc/self/exe is ld.so
  if (!nn::has_onednn() || is_loaders_argument || std::ranges::any_of(nn::kOpenmpWaitVariables, is_set)) return;
  ::setenv(kPolicy, "passive", 1);
  ::setenv(kSetByUs, "1", 1);
  ::execv("/proc/self/exe", argv);
  remove_variables();
}

}  // namespace gradring::train
