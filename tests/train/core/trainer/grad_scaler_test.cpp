// SPDX-License-Identifier: Apache-2.0
// Random overflows, step by step beside PyTorch's GradScaler. Skipped where no python3 imports a torch that has one for
// CPUs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <sstream>

#include "kernels/ops/step_state/step_state.h"
#include "tests/support/run_program.h"
#include "train/core/doctor/find_python.h"

namespace gradring::tests {
namespace {

using kernels::step_state::LossScalePolicy;
using kernels::step_state::StepState;

constexpr int kSteps = 400;
constexpr int kNoScaler = 77;  // the peer's exit code

/// '1' where the gradients overflow: in bursts, as they do.
std::string random_overflows(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string flags;
  while (flags.size() < kSteps) flags.append(random() % 12 + 1, random() % 4 == 0 ? '1' : '0');
  flags.resize(kSteps);
  return flags;
}

std::string of_pytorch(const std::string& python, float initial, const LossScalePolicy& policy,
                       const std::string& flags, int& code) {
  const ProgramEnd end =
      run_program({.command = {python, GRADRING_GRAD_SCALER_PEER, fmt::format("{:a}", initial),
                               fmt::format("{:a}", policy.growth_factor), fmt::format("{:a}", policy.backoff_factor),
                               std::to_string(policy.growth_interval), flags},
                   .folder = std::filesystem::temp_directory_path(),
                   .variables = {{"OMP_NUM_THREADS", "1"}}});
  code = end.code;
  EXPECT_TRUE(code == 0 || code == kNoScaler) << end.out << end.err;
  return end.out;
}

TEST(GradScaler, OfPyTorchMovesAlikeOverRandomOverflows) {
  const train::PythonSearch search = train::search_python_with_torch();
  if (!search.python) GTEST_SKIP() << search.to_string();
  constexpr LossScalePolicy kPolicies[] = {{2, 0.5f, 5}, {4, 0.25f, 1}, {1.5f, 0.75f, 2}};
  for (std::uint64_t seed = 1; const LossScalePolicy& policy : kPolicies) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::string flags = random_overflows(seed++);
    int code = 0;
    std::istringstream lines(of_pytorch(*search.python, 0x1p16f, policy, flags, code));
    if (code == kNoScaler) GTEST_SKIP() << lines.str();
    StepState state{.loss_scale = 0x1p16f};
    for (int step = 0; step < kSteps; ++step) {
      state.non_finite = flags[static_cast<std::size_t>(step)] == '1';
      const std::int32_t applied = state.applied_steps;
      kernels::step_state::reference_advance({&state, policy, true});
      std::string scale;
      int stepped = -1;
      ASSERT_TRUE(lines >> scale >> stepped) << "step " << step;
      ASSERT_EQ(std::stof(scale), state.loss_scale) << "step " << step;
      ASSERT_EQ(stepped, state.applied_steps - applied) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace gradring::tests
