// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench kernels`: every variant of every operation on one core or a GPU, checked against the reference, beside a
/// library or a plain loop, and against what the machine can do; on a GPU with what each kernel takes of it.
///
/// Errors    UsageError; EnvironmentError; Error if a variant computes wrongly.
void bench_kernels(std::span<const std::string> args);

}  // namespace gradring::train
