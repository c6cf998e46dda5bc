// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace gradring::tests {

/// Expects that every rank threw a Desync, and that the messages together contain each of `texts`.
void expect_all_desync(const std::vector<std::exception_ptr>& errors, const std::vector<std::string>& texts);

}  // namespace gradring::tests
