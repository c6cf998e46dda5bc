// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/cli/bench_kernels_options.h"

namespace gradring::train {

/// A command line that profiles what the options choose with Nsight Compute: every kernel of the operation once in every
/// launch configuration that occurs, with all metrics, after the launches that check and warm up. Its words are quoted for a
/// shell; `program` is how gradring is called; the report goes to the working folder.
std::string ncu_command(const KernelsBenchOptions& options, const std::string& program);

/// The path of the running program; "gradring" if the system does not tell.
std::string this_program();

}  // namespace gradring::train
