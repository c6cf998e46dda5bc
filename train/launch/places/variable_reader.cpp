// SPDX-License-Identifier: Apache-2.0
#include "train/launch/places/variable_reader.h"

#include <fmt/format.h>

#include <charconv>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

constexpr int kHighestPort = 65535;

int parse_number(const std::string& name, const std::string& text, int lowest, int highest) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < lowest || value > highest)
    throw InvalidArgument(
        highest == INT_MAX ? fmt::format("{}='{}' is not a whole number of {} or more", name, text, lowest)
                           : fmt::format("{}='{}' is not a whole number from {} to {}", name, text, lowest, highest));
  return value;
}

}  // namespace

std::string VariableReader::text(const std::string& name, std::string otherwise) const {
  return lookup_(name).value_or(std::move(otherwise));
}

int VariableReader::number(const std::string& name, int lowest, int highest, int otherwise) const {
  const auto text = lookup_(name);
  return text ? parse_number(name, *text, lowest, highest) : otherwise;
}

bool VariableReader::place(const std::string& rank_name, const std::string& size_name, int& rank, int& size) const {
  const auto rank_text = lookup_(rank_name);
  const auto size_text = lookup_(size_name);
  if (!rank_text && !size_text) return false;
  if (!rank_text || !size_text)
    throw InvalidArgument(
        fmt::format("{0} is set but {1} is not: set both, or neither, or start the workers with `gradring launch`",
                    rank_text ? rank_name : size_name, rank_text ? size_name : rank_name));
  size = parse_number(size_name, *size_text, 1, INT_MAX);
  rank = parse_number(rank_name, *rank_text, 0, INT_MAX);
  if (rank >= size)
    throw InvalidArgument(
        fmt::format("{0}={1} is outside {2}={3}: ranks go from 0 to {4}", rank_name, rank, size_name, size, size - 1));
  return true;
}

void VariableReader::read_common(WorkerEnvironment& it) const {
  it.master_addr = text("MASTER_ADDR", it.master_addr);
  it.master_port = number("MASTER_PORT", 0, kHighestPort, it.master_port);
  it.run_id = text("TORCHELASTIC_RUN_ID", it.run_id);
  it.restart_count = number("TORCHELASTIC_RESTART_COUNT", 0, INT_MAX, it.restart_count);
  it.error_file = text("TORCHELASTIC_ERROR_FILE", "");
  it.store_path = text("GRADRING_STORE", "");
  it.progress_file = text("GRADRING_PROGRESS_FILE", "");
  it.node_address = text("GRADRING_NODE_ADDRESS", "");
}

}  // namespace gradring::train
