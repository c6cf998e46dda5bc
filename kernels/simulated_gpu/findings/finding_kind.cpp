// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/findings/finding_kind.h"

#include <algorithm>
#include <array>

namespace gradring::simulated_gpu {
namespace {

struct Kind {
  std::string_view name;
  Severity severity;
};

constexpr std::array<Kind, kFindingKinds> kKinds = {{
    {"fault", Severity::error},
    {"out-of-bounds", Severity::error},
    {"misaligned", Severity::error},
    {"trap", Severity::error},
    {"deadlock", Severity::error},
    {"shared-race", Severity::error},
    {"block-race", Severity::error},
    {"global-race", Severity::error},
    {"stream-race", Severity::error},
    {"not-written", Severity::error},
    {"local-not-written", Severity::warning},
    {"padding", Severity::formal},
    {"missing-fence", Severity::error},
    {"unfenced-mbarrier", Severity::warning},
    {"undefined-value", Severity::error},
    {"read-only-load", Severity::error},
    {"unfinished-copy", Severity::error},
    {"divergent-barrier", Severity::error},
    {"early-exit", Severity::formal},
    {"same-value", Severity::formal},
    {"leak", Severity::warning},
    {"misuse", Severity::error},
    {"mistake", Severity::warning},
}};

}  // namespace

std::string_view name_of(FindingKind kind) { return kKinds[static_cast<std::size_t>(kind)].name; }

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::formal: return "formal";
  }
  return "";
}

Severity severity_of(FindingKind kind) { return kKinds[static_cast<std::size_t>(kind)].severity; }

std::optional<FindingKind> finding_kind(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == kKinds.end()) return std::nullopt;
  return static_cast<FindingKind>(found - kKinds.begin());
}

}  // namespace gradring::simulated_gpu
