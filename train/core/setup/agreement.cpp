// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/base/host_name.h"
#include "train/core/trainer/replica.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kOtherVersion =
    "a rank runs another version of gradring: install the same build on every node";

/// "rank 2 (node2, /data)"
std::string name_of(const RankFacts& rank, const RankValues& values) {
  return fmt::format("rank {} ({}{}{})", rank.rank, rank.host, values.where.empty() ? "" : ", ", values.where);
}

/// The value that a rank has in the place of `mine`; null if it has none, as another version.
const RankValue* value_at(const RankFacts& rank, std::size_t section, std::size_t index) {
  if (section >= rank.sections.size() || index >= rank.sections[section].values.size()) return nullptr;
  return &rank.sections[section].values[index];
}

/// All ranks' texts, of any length: padded to the longest for the all-gather.
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

/// Whether all ranks have the same values, wherever these come from.
bool all_equal(comm::ProcessGroup& group, std::span<const Agreement> agreements) {
  Sha256Sum sum;
  for (const Agreement& agreement : agreements)
    for (const auto& [name, value] : agreement.mine.values) {
      const std::string line = fmt::format("{}={}\n", name, value);
      sum.add(std::as_bytes(std::span(line)));
    }
  const std::vector<std::byte> all = group.all_gather_on_host(sum.finish());
  const std::size_t each = all.size() / static_cast<std::size_t>(group.world_size());
  for (std::size_t begin = each; begin < all.size(); begin += each)
    if (std::memcmp(all.data(), all.data() + begin, each) != 0) return false;
  return true;
}

}  // namespace

std::string RankFacts::to_text() const {
  Json json = {{"rank", rank}, {"host", host}, {"sections", Json::array()}};
  for (const RankValues& section : sections) {
    Json values = Json::array();
    for (const auto& [name, value] : section.values) values.push_back({name, value});
    json["sections"].push_back({{"where", section.where}, {"values", std::move(values)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RankFacts RankFacts::parse(const std::string& text) try {
  const Json json = Json::parse(text);
  RankFacts facts{.rank = json.at("rank").get<int>(), .host = json.at("host").get<std::string>()};
  for (const Json& section : json.at("sections")) {
    RankValues values{.values = {}, .where = section.at("where").get<std::string>()};
    for (const Json& pair : section.at("values"))
      values.values.push_back({pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
    facts.sections.push_back(std::move(values));
  }
  return facts;
} catch (const Json::exception&) {
  throw_disagreement(kOtherVersion);
}

std::string describe_differences(std::span<const RankFacts> ranks, std::size_t section, const Advice& advice) {
  const RankFacts& first = ranks.front();
  std::string differences, what_to_do;
  for (std::size_t i = 0; const RankValue* value = value_at(first, section, i); ++i) {
    const auto differs = [&](const RankFacts& rank) {
      const RankValue* other = value_at(rank, section, i);
      return other && other->value != value->value;
    };
    const auto other = std::ranges::find_if(ranks, differs);
    if (other == ranks.end()) continue;
    const std::string found = value_at(*other, section, i)->value;
    differences +=
        fmt::format("{}{} is {} on {} but {} on {}", differences.empty() ? "" : "; ", value->name, value->value,
                    name_of(first, first.sections[section]), found, name_of(*other, other->sections[section]));
    if (const auto more = std::count_if(other + 1, ranks.end(), differs); more > 0)
      differences += fmt::format(", and differs on {} other{}", more, more == 1 ? "" : "s");
    if (what_to_do.empty()) what_to_do = "; " + advice(value->value, found);
  }
  return differences + what_to_do;
}

std::vector<RankFacts> gather_facts(comm::ProcessGroup& group, const RankFacts& mine) {
  std::vector<RankFacts> ranks;
  for (const std::string& text : gather_texts(group, mine.to_text())) ranks.push_back(RankFacts::parse(text));
  return ranks;
}

std::vector<std::string> agree(comm::ProcessGroup& group, std::span<const Agreement> agreements,
                               const std::string& run_dir, const std::string& two_runs) {
  if (group.world_size() == 1 || all_equal(group, agreements)) return {};
  RankFacts mine{.rank = group.rank(), .host = host_name() + ", " + describe_process(run_dir)};
  for (const Agreement& agreement : agreements) mine.sections.push_back(agreement.mine);
  const std::vector<RankFacts> ranks = gather_facts(group, mine);
  std::vector<std::string> remarks;
  for (std::size_t section = 0; section < agreements.size(); ++section) {
    std::string differences = describe_differences(ranks, section, agreements[section].advice);
    if (differences.empty()) continue;
    if (agreements[section].is_required) throw_disagreement(differences + two_runs);
    remarks.push_back(std::move(differences));
  }
  if (remarks.empty()) throw_disagreement(kOtherVersion);  // other values than this version's
  return remarks;
}

void throw_disagreement(std::string_view differences) {
  throw ReplicaError(fmt::format("the ranks do not agree: {}", differences));
}

}  // namespace gradring::train
