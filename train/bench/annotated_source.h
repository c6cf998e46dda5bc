// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "kernels/simulated_gpu/counters/launch_counts.h"

namespace gradring::train::bench {

/// What is written beside the source of counted kernels.
struct AnnotationSpec {
  std::filesystem::path file;               ///< that is written; empty: not written
  std::filesystem::path source_root = ".";  ///< the folder that has kernels/ and the other files that kernels name
  bool ptx = false;                         ///< below each line the PTX that it became
  bool sass = false;                        ///< the machine code, too, as nvdisasm prints it

  bool is_wanted() const { return !file.empty(); }
};

/// The source of kernels with counts beside every line, of launches that were counted with listings.
class AnnotatedSource {
 public:
  explicit AnnotatedSource(AnnotationSpec spec) : spec_(std::move(spec)) {}

  /// Launches of one kernel are summed.
  void add(const simulated_gpu::LaunchCounts& launch);

  /// Every file with a line of the kernels, whole; where it cannot be read, the lines that have counts.
  ///
  /// Errors    EnvironmentError if machine code is wanted and nvdisasm is missing or fails.
  std::string text() const;
  /// Writes text() to the file.
  ///
  /// Errors    the same; EnvironmentError with path and reason.
  void write() const;

 private:
  struct Kernel {
    std::string name;
    std::size_t launches = 0;
    simulated_gpu::KernelListing listing;
  };

  AnnotationSpec spec_;
  std::map<std::string, Kernel> kernels_;  // by mangled name
};

/// The instructions of a kernel by their offset, as `nvdisasm` prints them. Visible for tests.
std::map<std::size_t, std::string> disassembly_of(const std::string& kernel, const std::string& nvdisasm_output);

}  // namespace gradring::train::bench
