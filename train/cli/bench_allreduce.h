// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench allreduce ARGS`: one rank of it where a launcher says so (RANK is set), or else all of them, each as a
/// process of its own.
///
/// Errors    UsageError; EnvironmentError without a Python for --compare; comm's errors; Error if a sum was wrong.
void bench_allreduce(std::span<const std::string> args);

}  // namespace gradring::train
