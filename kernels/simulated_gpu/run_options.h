// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradring::simulated_gpu {

/// What a program that is linked with our libcudart.so simulates, and what it reports. `gradring cuda run` writes it
/// into the environment of the program, where the library reads it.
struct RunOptions {
  std::string gpu = "h100";  ///< as card_of() takes it: a name, or the path of a card file
  int gpus = 1;
  std::uint64_t seed = 0;  ///< of the order of work that CUDA leaves open
  unsigned threads = 1;    ///< of the host, which execute kernels
  bool counters = false;   ///< a table of launches at the end
  /// Of the kernels that are counted: a regular expression (ECMAScript), searched in the demangled name; empty: all.
  std::string kernel;
  std::optional<double> time_limit_s;  ///< after which the program ends with kTimeLimitExitCode
  std::string json;                    ///< path of the report, as JSON; empty: none
  /// Path of a file to which each process appends its findings and its report as lines of JSON, instead of `json`, for
  /// the process that watches; empty: none.
  std::string record;
  /// The exit code of a program with errors that itself ends with 0; without it, the program's own stays.
  std::optional<int> error_exitcode;
  std::string suppressions;  ///< path of the file; empty: none
  bool formal = false;       ///< also findings that no hardware shows

  bool operator==(const RunOptions&) const = default;
};

inline constexpr const char* kRunOptionsVariable = "GRADRING_SIMULATED_GPU";
inline constexpr int kTimeLimitExitCode = 124;  ///< that of timeout(1)

/// A JSON object with the options that differ from the default.
std::string text_of(const RunOptions& options);
/// The options of such a text; what is absent has its default.
///
/// Errors    InvalidArgument: no JSON object, an unknown key, a value of another type or out of range.
RunOptions run_options_from(const std::string& text);

}  // namespace gradring::simulated_gpu
