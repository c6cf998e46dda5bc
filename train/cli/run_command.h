// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace gradring::train {

/// Runs a command's body and returns its exit code; what it throws is said once on stderr, behind `name` ("gradring eval").
/// A failure to write standard output is thrown on, for finish_standard_output.
int run_command(std::string_view name, const std::function<int()>& body);

}  // namespace gradring::train
