// SPDX-License-Identifier: Apache-2.0
// Values that every rank has for itself and that must be equal on all of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/process_group.h"

namespace gradring::train {

/// "batch-size" is "8".
struct RankValue {
  std::string name;
  std::string value;
};

/// Values of one rank that are compared together.
struct RankValues {
  std::vector<RankValue> values;
  std::string where = {};  ///< where the rank has them from, shown beside its host: a folder
};

/// What a rank tells the others.
struct RankFacts {
  int rank = 0;
  std::string host;
  std::vector<RankValues> sections = {};

  std::string to_text() const;
  /// The inverse.
  ///
  /// Errors    ReplicaError if `text` is not of this form, as another version's.
  static RankFacts parse(const std::string& text);
};

/// What to do about two values of a section, the first rank's and another's.
using Advice = std::function<std::string(const std::string& first, const std::string& other)>;

/// The same text for any values.
inline Advice always(std::string text) {
  return [text = std::move(text)](const std::string&, const std::string&) { return text; };
}

/// A section of RankFacts, and what a difference in it means.
struct Agreement {
  RankValues mine;
  Advice advice;
  bool is_required = true;  ///< a difference is an error, otherwise a remark
};

/// The differences within a section, "batch-size is 8 on rank 0 (node1) but 16 on rank 2 (node2)", and what to do. Of
/// each value, the first rank that differs is named, and how many others do. Empty if there are none.
std::string describe_differences(std::span<const RankFacts> ranks, std::size_t section, const Advice& advice);

/// What all ranks tell, in their order. Collective.
///
/// Errors    ReplicaError as parse; comm::CommError.
std::vector<RankFacts> gather_facts(comm::ProcessGroup& group, const RankFacts& mine);

/// Compares the sections of all ranks, in their order: an earlier one may be why a later one differs. Collective.
/// `run_dir` names this rank's process in messages. `two_runs`: what to do if the ranks are of two runs.
///
/// Returns   remarks.
/// Errors    ReplicaError with the differences of the first section in which there are any; comm::CommError.
/// Cost      where all agree, one all-gather of 32 bytes a rank.
std::vector<std::string> agree(comm::ProcessGroup& group, std::span<const Agreement> agreements,
                               const std::string& run_dir = "", const std::string& two_runs = "");

/// The error of ranks that do not agree. `differences`: describe_differences().
[[noreturn]] void throw_disagreement(std::string_view differences);

}  // namespace gradring::train
