// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ncu_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "train/cli/shell_words.h"

namespace gradring::train {
namespace {

using Words = std::vector<std::string>;

/// Launches of each kernel before one that is worth profiling: measure_case.h checks a result, and then warms up twice.
constexpr int kLaunchesBefore = 3;

/// Kernels are named after their operation (kernels/README.md); those that add up shares are conv2d's.
std::string kernels_of(const std::string& operation) {
  return operation == "conv_relu_pool" ? "regex:^(conv_relu_pool|conv2d)_" : "regex:^" + operation + "_";
}

std::string shape_of(const kernels::bench::Extents& extents) {
  Words words;
  for (const auto& [name, value] : extents) words.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace

std::string ncu_command(const KernelsBenchOptions& options, const std::string& program) {
  const std::string dtype(name_of(options.dtype));
  const std::string what = options.variant.empty() ? options.operation : options.operation + "_" + options.variant;
  Words words = {"ncu",
                 "--set",
                 "full",
                 "--kernel-name-base",
                 "function",
                 "--kernel-name",
                 kernels_of(options.operation),
                 "--filter-mode",
                 "per-launch-config",
                 "--launch-skip",
                 std::to_string(kLaunchesBefore),
                 "--launch-count",
                 "1",
                 "--force-overwrite",
                 "--export",
                 fmt::format("ncu_{}_{}", what, dtype)};
  words.insert(words.end(), {program, "bench", "kernels", "--device", options.device == "cpu" ? "cuda" : options.device,
                             "--op", options.operation, "--dtype", dtype, "--seconds", "0", "--no-peers"});
  if (!options.variant.empty()) words.insert(words.end(), {"--variant", options.variant});
  if (!options.extents.empty()) words.insert(words.end(), {"--shape", shape_of(options.extents)});
  return shell_command(words);
}

std::string this_program() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "gradring" : self.string();
}

}  // namespace gradring::train
