// SPDX-License-Identifier: Apache-2.0
#include "train/setup/same_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <vector>

#include "train/config/resolve.h"
#include "train/trainer/check_replicas.h"
#include "train/trainer/recorded_cpu_level.h"

namespace gradring::train {
namespace {

constexpr std::string_view kIs = " = ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string describe(const std::string& line, std::size_t rank, const std::string& other) {
  const std::size_t end = line.find(kIs);
  return fmt::format("{} is {} on rank 0 but {} on rank {}", line.substr(0, end), line.substr(end + kIs.size()),
                     other.substr(std::min(other.size(), other.find(kIs) + kIs.size())), rank);
}

/// Every rank's text, which may have any length: all give as many bytes as the longest.
std::vector<std::string> gather_texts(comm::ProcessGroup& group, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(group.world_size());
  std::vector<std::int64_t> sizes(ranks, 0);
  sizes[static_cast<std::size_t>(group.rank())] = static_cast<std::int64_t>(mine.size());
  group.all_reduce_on_host(std::span(sizes));
  const auto longest = static_cast<std::size_t>(*std::ranges::max_element(sizes));

  std::string padded = mine;
  padded.resize(longest);
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(padded)));
  std::vector<std::string> texts(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts[rank].resize(static_cast<std::size_t>(sizes[rank]));
    std::memcpy(texts[rank].data(), all.data() + rank * longest, texts[rank].size());
  }
  return texts;
}

}  // namespace

std::string describe_differences(std::span<const std::string> settings) {
  std::string differences;
  const std::vector<std::string> first = lines_of(settings.front());
  for (std::size_t rank = 1; rank < settings.size(); ++rank) {
    if (settings[rank] == settings.front()) continue;
    const std::vector<std::string> other = lines_of(settings[rank]);
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
      if (first[i] != other[i]) differences += (differences.empty() ? "" : "; ") + describe(first[i], rank, other[i]);
    if (first.size() != other.size()) differences += fmt::format("rank {} runs another version of gradring", rank);
  }
  return differences;
}

void check_same_settings(comm::ProcessGroup& group, const TrainConfig& config) {
  const std::string differences = describe_differences(gather_texts(group, to_toml(config)));
  if (!differences.empty()) throw ReplicaError("the ranks were started with different settings: " + differences);
}

void check_same_cpu_level(comm::ProcessGroup& group, const std::string& level) {
  const std::vector<std::string> levels = gather_texts(group, level);
  const auto other = std::ranges::find_if(levels, [&](const std::string& one) { return one != levels.front(); });
  if (other == levels.end()) return;
  const auto& [lower, higher] = std::minmax(levels.front(), *other);
  if (lower.empty())
    throw ReplicaError(fmt::format("rank 0 and rank {} train on a GPU and on a CPU: use one --device for all",
                                   other - levels.begin()));
  throw ReplicaError(
      fmt::format("rank 0 runs {} code and rank {} runs {} code, which round differently; {} on all ranks",
                  levels.front(), other - levels.begin(), *other, advice_for_cpu_level(lower, higher)));
}

}  // namespace gradring::train
