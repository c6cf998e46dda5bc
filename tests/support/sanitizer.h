// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gradring::tests {

/// "address", "thread", or nothing: what this build was made with.
inline constexpr std::string_view kSanitizer = GRADRING_SANITIZER;

/// Under ThreadSanitizer a ConvNet's step takes seconds: trainings are cut short there, the long ones under any sanitizer,
/// and say nothing new.
inline constexpr bool kThreadSanitizer = kSanitizer == "thread";

}  // namespace gradring::tests
