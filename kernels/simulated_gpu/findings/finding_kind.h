// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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
  local_not_written,  ///< local memory is read that the thread has not written: compilers load variables early
  padding,            ///< memory is read of which some bytes were written and some were not
  missing_fence,      ///< fence.proxy.async
  unfenced_mbarrier,  ///< a bulk copy uses an mbarrier that was initialised without a fence, as libcu++ does
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
/// The kind with this name.
std::optional<FindingKind> finding_kind(std::string_view name);

/// formal: the PTX ISA leaves a result open that every GPU gives in the same way; reported on request.
enum class Severity : std::uint8_t { error, warning, formal };
std::string_view name_of(Severity severity);
Severity severity_of(FindingKind kind);

}  // namespace gradring::simulated_gpu
