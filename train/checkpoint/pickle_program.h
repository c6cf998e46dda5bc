// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gradring::train {

/// Throws the CheckpointError of a pickle that is not read: what was found, and how to save one that is.
[[noreturn]] void refuse_pickle(const std::filesystem::path& path, const std::string& found);

/// The bytes of a pickle, taken from the front: opcodes and what stands behind them.
///
/// Errors    CheckpointError if it ends too early.
class PickleProgram {
 public:
  PickleProgram(std::string_view bytes, const std::filesystem::path& path) : rest_(bytes), path_(path) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view take(std::size_t bytes);
  /// Up to the next line break, which is taken too.
  std::string_view take_line();
  /// Little-endian, of up to 8 bytes.
  std::uint64_t take_number(std::size_t bytes);
  /// Two's complement of up to 8 bytes; none at all are 0.
  std::int64_t take_signed(std::size_t bytes);

 private:
  std::string_view rest_;
  const std::filesystem::path& path_;
};

}  // namespace gradring::train
