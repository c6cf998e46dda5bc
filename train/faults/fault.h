// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

enum class FaultKind : std::uint8_t {
  kill,   ///< SIGKILL: as by the kernel, when memory is short
  stop,   ///< SIGSTOP: a process that hangs
  delay,  ///< sleeps: a slow one
  exit,   ///< leaves with a code, without a word
  nan,    ///< its gradients of that step are none
};

/// Something that is to go wrong in a training, for tests and for teachers: `--inject KIND:rank=R,step=N,...`.
struct Fault {
  FaultKind kind = FaultKind::kill;
  std::optional<int> rank;         ///< none: any, drawn
  std::int64_t first_step = 1;     ///< of the run, counted from 1: one of
  std::int64_t last_step = 1;      ///< these, drawn
  std::uint64_t seed = 0;          ///< of what is drawn
  std::optional<int> attempt = 0;  ///< in which it happens (TORCHELASTIC_RESTART_COUNT); none: in every one
  std::chrono::milliseconds delay{0};
  int code = 1;  ///< of an exit

  bool draws() const { return !rank || first_step != last_step; }
  bool operator==(const Fault&) const = default;
};

/// What stands between the faults of one text.
inline constexpr char kBetweenFaults = ';';

std::string_view name_of(FaultKind kind);

/// "kill:rank=1,step=20;delay:rank=any,step=20..40,ms=500,seed=7"; an empty text has none.
///
/// Errors    UsageError: what was given, what was expected.
std::vector<Fault> parse_faults(std::string_view text);

/// The inverse.
std::string show_faults(std::span<const Fault> faults);

}  // namespace gradring::train
