// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace gradring::tests {

/// Expects that every rank threw a Desync, and that their texts together hold each of `words`.
void expect_all_desync(const std::vector<std::exception_ptr>& errors, const std::vector<std::string>& words);

}  // namespace gradring::tests
