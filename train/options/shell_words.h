// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// A word as a POSIX shell reads it back: quoted where it has to be. What is not printable is escaped within $'...'.
///
/// Source    POSIX.1-2024, 2.2 Quoting
std::string shell_quoted(const std::string& word);

/// A command line of words, each quoted where it has to be.
std::string shell_command(std::span<const std::string> words);

}  // namespace gradring::train
