// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/findings/finding_kind.h"
#include "kernels/simulated_gpu/findings/suppressions.h"
#include "kernels/simulated_gpu/machine/finding_options.h"
#include "kernels/simulated_gpu/machine/launch.h"

namespace gradring::simulated_gpu {

struct Finding {
  FindingKind kind = FindingKind::fault;
  Severity severity = Severity::error;
  int device = -1;                      ///< -1: of no GPU
  std::string kernel;                   ///< "gemm_run_kernel<float>"; empty: no kernel
  std::string file;                     ///< of the instruction; empty: not known
  unsigned line = 0;                    ///< 0: not known
  std::string called_from;              ///< "file:line"; empty: the kernel itself
  std::string instruction;              ///< PTX
  std::optional<CodeLocation> other{};  ///< the other side of a race between blocks or streams
  std::optional<Extent> thread;
  std::optional<Extent> block;
  std::string text;  ///< the whole message, several lines
  /// The host's calls that led to the work, from the innermost on; empty: not known.
  std::vector<std::string> host_stack{};
  std::uint64_t count = 1;  ///< how often it happened
  bool is_suppressed = false;
};

/// "cuda:0: race in shared memory: ..."; of warnings and formal findings the severity stands in front.
std::string text_of(const Finding& finding);
/// {"kind": "shared-race", ...}: docs/cuda.schema.json.
std::string json_of(const Finding& finding);

/// What is one finding, however often it happens.
struct FindingKey {
  FindingKind kind = FindingKind::fault;
  const void* kernel = nullptr;
  std::size_t position = 0;  ///< of the instruction
  std::string detail{};      ///< the other side of a race, or the whole text

  auto operator<=>(const FindingKey&) const = default;
};

/// The findings of a process, or of a test.
///
/// Threads   any.
/// Errors    InvalidArgument of the constructor: a line of the suppressions that is not valid.
class FindingLog {
 public:
  using Show = std::function<void(const Finding&)>;

  /// `show` is called for each that is new and not suppressed.
  explicit FindingLog(const FindingOptions& options = {}, Show show = {});

  /// From now on, `host_stack` says what Finding::host_stack of a new finding is.
  void ask_host_stack(std::function<std::vector<std::string>(const Finding&)> host_stack) {
    host_stack_ = std::move(host_stack);
  }

  /// From now on, `record` gets the JSON of each new finding, also of those that are suppressed.
  void record(std::function<void(const std::string& json)> record) { record_ = std::move(record); }

  bool goes_on() const { return goes_on_; }
  /// Whether this has to be described and added. If not, it is known and counted, or nobody asked for formal findings.
  bool is_new(const FindingKey& key);
  void add(const FindingKey& key, Finding finding);
  /// Adds one that is known by its text.
  void add(Finding finding);
  /// The same for one of the host.
  void add(FindingKind kind, std::string text) {
    add(Finding{.kind = kind, .severity = severity_of(kind), .text = std::move(text)});
  }

  /// In the order in which they were seen first; those that are suppressed, too.
  std::vector<Finding> all() const;
  /// text_of() each.
  std::vector<std::string> texts() const;
  /// Those that are not suppressed.
  std::size_t count(Severity severity) const;
  /// "3 errors, 1 warning (2 suppressed)", and a line for each kind.
  std::string summary() const;
  /// {"errors": 1, "warnings": 0, ..., "findings": [{"kind": "shared-race", ...}]}
  std::string json() const;

 private:
  bool is_suppressed(const Finding& finding) const;

  bool goes_on_;
  bool formal_;
  Show show_;
  std::function<std::vector<std::string>(const Finding&)> host_stack_;
  std::function<void(const std::string&)> record_;
  std::vector<Suppression> suppressions_;
  mutable std::mutex mutex_;                   // of the two below
  std::map<FindingKey, std::size_t> indices_;  // into findings_
  std::vector<Finding> findings_;
};

}  // namespace gradring::simulated_gpu
