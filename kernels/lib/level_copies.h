// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Macros for functions of the namespace GRADRING_KERNEL_COPY, named by the namespace around it and by their own name.
/// One that is listed in gradring_level_sources is compiled once for each level of the instruction set
/// (kernels/runtime/cpu_level.h), each time into a namespace of its own:
///
///   GRADRING_DECLARE_COPIES(adam, Variant, vector);          // Variant adam::vector(), defined in adam's 2_vector.cu
///   ...
///   Variant variant = GRADRING_COPY_TO_RUN(adam, vector)();  // of the level that this process runs
///
/// Where there is one copy (one level, or nvcc's copy), GRADRING_DECLARE_COPIES is GRADRING_DECLARE_COPY.
#define GRADRING_DECLARE_COPY(space, Result, function) \
  namespace space {                                    \
  inline namespace GRADRING_KERNEL_COPY {              \
  Result function();                                   \
  }                                                    \
  }                                                    \
  static_assert(true, "a semicolon follows")

#ifdef GRADRING_CPU_LEVELS
#include "kernels/runtime/cpu_level.h"

#define GRADRING_DECLARE_COPIES(space, Result, function) \
  namespace space {                                      \
  namespace on_cpu_v3 {                                  \
  Result function();                                     \
  }                                                      \
  namespace on_cpu_v4 {                                  \
  Result function();                                     \
  }                                                      \
  }                                                      \
  GRADRING_DECLARE_COPY(space, Result, function)
#define GRADRING_COPY_TO_RUN(space, function)                                                           \
  ::gradring::kernels::copy_to_run(&space::GRADRING_KERNEL_COPY::function, &space::on_cpu_v3::function, \
                                   &space::on_cpu_v4::function)

namespace gradring::kernels {

template <class Function>
Function* copy_to_run(Function* baseline, Function* v3, Function* v4) {
  switch (cpu_level()) {
    case CpuLevel::x86_64_v4: return v4;
    case CpuLevel::x86_64_v3: return v3;
    case CpuLevel::baseline: break;
  }
  return baseline;
}

}  // namespace gradring::kernels
#else
#define GRADRING_DECLARE_COPIES(space, Result, function) GRADRING_DECLARE_COPY(space, Result, function)
#define GRADRING_COPY_TO_RUN(space, function) (&space::function)
#endif
