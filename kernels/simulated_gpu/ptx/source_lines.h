// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <tuple>

#include "kernels/simulated_gpu/ptx/lexer.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::ptx {

/// Follows the .loc of a kernel: which C++ line comes next, and from which line of the kernel its function was called.
class SourceLines {
 public:
  /// Reads what follows .loc: "1 86 3", or "2 12 5, function_name $L__info_string1, inlined_at 1 86 3".
  void read(Lexer& lexer);

  Source source() const { return source_; }
  Source called_from() const { return called_from_; }

 private:
  using Place = std::tuple<unsigned, unsigned, unsigned>;  ///< file, line, column

  Source source_;
  Source called_from_;
  /// The line of the kernel for each place so far: an inlined function may be inlined into an inlined one.
  std::map<Place, Source> lines_of_kernel_;
};

}  // namespace gradring::ptx
