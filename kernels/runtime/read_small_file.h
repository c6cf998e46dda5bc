// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring {

/// A file could not be read. The message is the reason alone: "cannot be opened (No such file or directory)".
class ReadError : public Error {
 public:
  using Error::Error;
};

/// The bytes of a file that a person named: a regular file, or a pipe such as a shell's <(command).
///
/// Errors    ReadError: it cannot be opened or read, has more than `most_bytes`, or is a pipe to which nothing is written for
///           `patience`.
/// Cost      takes memory for what is there, never for more than `most_bytes` and a little.
std::string read_small_file(const std::filesystem::path& path, std::size_t most_bytes,
                            std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace gradring
