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
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/machine/finding_options.h"
#include "kernels/simulated_gpu/machine/launch.h"

namespace gradring::simulated_gpu {

/// What is wrong. name_of() gives the names that suppressions and JSON use.
enum class FindingKind : std::uint8_t {
  fault,              ///< ends the launch, for any other reason than those below
  out_of_bounds,      ///< of an allocation, of shared or local memory; ends the launch
  misaligned,         ///< ends the launch
  trap,               ///< ends the launch
  deadlock,           ///< or a block that does not end; ends the launch
  shared_race,        ///< two threads of a block, without a barrier in between
  block_race,         ///< two blocks of a launch, in global memory
  global_race,        ///< two threads of a block, in global memory
  stream_race,        ///< two pieces of work that no stream, event or wait orders
  not_written,        ///< memory is read that nobody has written
  padding,            ///< memory is read of which some bytes were written and some were not
  missing_fence,      ///< fence.proxy.async
  undefined_value,    ///< a shuffle reads a lane that takes no part
  read_only_load,     ///< ld.global.nc of what the launch writes
  unfinished_copy,    ///< the block ends while a copy or wgmma is under way
  divergent_barrier,  ///< threads of a warp pass a barrier at which others of it wait
  early_exit,         ///< a barrier for all threads, some of which have ended: they count as arrived
  same_value,         ///< two threads store the same value to the same bytes
  leak,               ///< an object or memory that is left at the end of the process
  misuse,             ///< a call that breaks a rule of CUDA, and fails
  mistake,            ///< a call that CUDA lets pass
};
inline constexpr std::size_t kFindingKinds = static_cast<std::size_t>(FindingKind::mistake) + 1;

/// "shared-race"
std::string_view name_of(FindingKind kind);

/// formal: the PTX ISA leaves a result open that every GPU gives in the same way; reported on request.
enum class Severity : std::uint8_t { error, warning, formal };
std::string_view name_of(Severity severity);
Severity severity_of(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::fault;
  Severity severity = Severity::error;
  int device = -1;          ///< -1: of no GPU
  std::string kernel;       ///< "gemm_run_kernel<float>"; empty: no kernel
  std::string file;         ///< of the instruction; empty: not known
  unsigned line = 0;        ///< 0: not known
  std::string called_from;  ///< "file:line"; empty: the kernel itself
  std::string instruction;  ///< PTX
  std::optional<Extent> thread;
  std::optional<Extent> block;
  std::string text;         ///< the whole message, several lines
  /// The host's calls that led to the work, from the innermost on; empty: not known.
  std::vector<std::string> host_stack{};
  std::uint64_t count = 1;  ///< how often it happened
  bool is_suppressed = false;
};

/// "cuda:0: race in shared memory: ..."; of warnings and formal findings the severity stands in front.
std::string text_of(const Finding& finding);

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
/// Suppressions: a line each, whose fields must all match; `#` begins a comment.
///
///     kind=shared-race kernel=reduce.* file=reduce.cu line=31
///
/// `kernel` is a regular expression (ECMAScript) for the whole name, `file` the end of the path.
///
/// Threads   any.
/// Errors    InvalidArgument of the constructor: a line that is not as above.
class FindingLog {
 public:
  using Show = std::function<void(const Finding&)>;

  /// `show` is called for each that is new and not suppressed.
  explicit FindingLog(const FindingOptions& options = {}, Show show = {});
  ~FindingLog();

  /// From now on, `host_stack` says what Finding::host_stack of a new finding is.
  void ask_host_stack(std::function<std::vector<std::string>(const Finding&)> host_stack) {
    host_stack_ = std::move(host_stack);
  }

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
  struct Suppression;

  bool is_suppressed(const Finding& finding) const;

  bool goes_on_;
  bool formal_;
  Show show_;
  std::function<std::vector<std::string>(const Finding&)> host_stack_;
  std::vector<Suppression> suppressions_;
  mutable std::mutex mutex_;                   // of the two below
  std::map<FindingKey, std::size_t> indices_;  // into findings_
  std::vector<Finding> findings_;
};

}  // namespace gradring::simulated_gpu
