// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/pickle_program.h"

#include <algorithm>

#include "train/checkpoint/error.h"
#include "train/checkpoint/little_endian.h"

namespace gradring::train {

void refuse_pickle(const std::filesystem::path& path, const std::string& found) {
  throw CheckpointError(path, found,
                        "save a state_dict (torch.save(model.state_dict(), ...)), which holds tensors alone");
}

std::string_view PickleProgram::take(std::size_t bytes) {
  if (bytes > rest_.size()) refuse_pickle(path_, "has a pickle that is cut short");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::string_view PickleProgram::take_line() {
  const std::string_view line = take(std::min(rest_.find('\n'), rest_.size()));
  take(1);
  return line;
}

std::uint64_t PickleProgram::take_number(std::size_t bytes) {
  std::string padded(take(bytes));
  padded.resize(8, '\0');
  return get_little_endian<std::uint64_t>(padded, 0);
}

std::int64_t PickleProgram::take_signed(std::size_t bytes) {
  if (bytes > 8) refuse_pickle(path_, "has a number of more than 64 bits in its pickle");
  std::string padded(take(bytes));
  const bool negative = !padded.empty() && (static_cast<unsigned char>(padded.back()) & 0x80);
  padded.resize(8, negative ? '\xff' : '\0');
  return static_cast<std::int64_t>(get_little_endian<std::uint64_t>(padded, 0));
}

}  // namespace gradring::train
