// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/simulated_gpu/machine/findings.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {

/// A Fault whose message names thread, kernel, line and instruction.
class LocatedFault : public Fault {
 public:
  explicit LocatedFault(Finding finding) : Fault(finding.text), finding_(std::move(finding)) {}

  const Finding& finding() const { return finding_; }

 private:
  Finding finding_;
};

/// Null if the first finding ends the launch.
FindingLog* findings_of(const Warp& warp);
FindingKey key_of(const Warp& warp, FindingKind kind, std::size_t position);
std::size_t position_in(const Warp& warp, const Operation& operation);

/// "kernels/ops/gemm/7_mma.cu": nvcc writes paths from the root of the file system, or of a build folder. Other files
/// keep theirs, as those of the CUDA toolkit.
std::string path_in_repository(std::string_view path);

/// "(3, 0, 0)"
std::string text_of(const Extent& at);

/// "gemm_mma_kernel<__half>"
std::string kernel_label(const ptx::Kernel& kernel);
std::string function_label(const ptx::Function& function);
/// "kernels/ops/gemm/7_mma.cu:118: bar.sync 0;"
std::string describe_instruction(const Program& program, std::size_t position);
CodeLocation location_of(const Program& program, std::size_t position);
/// "thread (3, 0, 0)", by its index in the block
std::string describe_thread_of_block(const Warp& warp, unsigned thread);

/// "thread (3, 0, 0) of block (1, 0, 0)\n   in <kernel>, <file>:<line>\n   <instruction>"
std::string describe_location(const Warp& warp, std::size_t position, unsigned lane);

/// The finding with what happened, and where.
Finding finding_at(const Warp& warp, FindingKind kind, std::size_t position, unsigned lane, const std::string& what);
/// The same of an instruction of a launch, by no thread in particular; `text` is the whole message.
Finding finding_of_launch(const Program& program, int device, FindingKind kind, std::size_t position, std::string text);

/// Notes what a GPU would let pass, once for each kernel, instruction and kind; `what()` describes it without its
/// location.
///
/// Errors    LocatedFault if the launch collects no findings.
template <class What>
void note_finding(const Warp& warp, FindingKind kind, std::size_t position, unsigned lane, const What& what) {
  FindingLog* const findings = findings_of(warp);
  if (findings == nullptr) warp.fail_at(position, lane, what(), kind);
  const FindingKey key = key_of(warp, kind, position);
  if (findings->is_new(key)) findings->add(key, finding_at(warp, kind, position, lane, what()));
}
template <class What>
void note_finding(const Warp& warp, FindingKind kind, const Operation& operation, unsigned lane, const What& what) {
  note_finding(warp, kind, position_in(warp, operation), lane, what);
}

FindingKind kind_of(SharedFinding::Problem problem);
/// "race in shared memory: 4 bytes at 1024 are read, and were written by thread (1, 0, 0) without a barrier in between"
std::string describe_finding(const Warp& warp, const SharedFinding& finding, const std::string& bytes,
                             const std::string& verb);

/// `verb`: what the operation does.
void note_shared_finding(const Warp& warp, const Operation& operation, unsigned lane, const SharedFinding& finding,
                         const std::string& bytes, const std::string& verb, FindingKind kind);

/// Calls f(); a Fault that does not say where it happened gets the location of this operation and lane.
template <class F>
auto at_lane(const Warp& warp, const Operation& operation, unsigned lane, F f) {
  try {
    return f();
  } catch (const LocatedFault&) {
    throw;
  } catch (const Fault& fault) {
    warp.fail(operation, lane, fault.what());
  }
}

}  // namespace gradring::simulated_gpu
