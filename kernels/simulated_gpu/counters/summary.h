// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/simulated_gpu/counters/card.h"
#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "kernels/simulated_gpu/machine/counters.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/ptx/machine_code.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// A launch that was executed with ExecutionOptions::counted_multiprocessors of the card.
struct ExecutedLaunch {
  const ptx::Module& module;
  const ptx::Kernel& kernel;
  const std::optional<ptx::CompiledKernel>& code;
  const LaunchSpec& spec;
  const Counters& counters;
  const Card& card;
};

/// Sums, occupancy and bound of a launch. `name`: of the kernel, for people.
LaunchCounts summary_of(const ExecutedLaunch& launch, std::string name);

}  // namespace gradring::simulated_gpu
