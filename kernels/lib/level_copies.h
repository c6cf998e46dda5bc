// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Two macros for a function whose source is compiled once for each level of the instruction set
/// (kernels/runtime/cpu_level.h). Each copy has its own namespace, GRADRING_KERNEL_COPY:
///
///   namespace gradring::kernels::adam {
///   GRADRING_DECLARE_COPIES(Variant, vector);          // 2_vector.cu, listed in gradring_level_sources
///   ...
///   Variant variant = GRADRING_COPY_TO_RUN(vector)();  // of the level that this process runs
///   }
///
/// From outside of the namespace adam: GRADRING_COPY_TO_RUN_OF(adam::, vector). Where there is one copy (one level, or
/// nvcc's copy), the macros declare and select it.
#ifdef GRADRING_CPU_LEVELS
#include <gradring_cpu_levels.h>

#include <type_traits>

#include "kernels/runtime/cpu_level.h"

#define GRADRING_DECLARE_COPIES(Result, function) \
  inline namespace GRADRING_KERNEL_COPY {         \
  Result function();                              \
  }                                               \
  namespace on_cpu_v3 {                           \
  Result function();                              \
  }                                               \
  namespace on_cpu_v4 {                           \
  Result function();                              \
  }                                               \
  static_assert(true, "a semicolon follows")
#ifdef GRADRING_CPU_V3
#define GRADRING_COPY_OF_V3(space, function) &space on_cpu_v3::function
#else
#define GRADRING_COPY_OF_V3(space, function) nullptr
#endif
#ifdef GRADRING_CPU_V4
#define GRADRING_COPY_OF_V4(space, function) &space on_cpu_v4::function
#else
#define GRADRING_COPY_OF_V4(space, function) nullptr
#endif
#define GRADRING_COPY_TO_RUN_OF(space, function)                                                                \
  ::gradring::kernels::copy_to_run(&space GRADRING_KERNEL_COPY::function, GRADRING_COPY_OF_V3(space, function), \
                                   GRADRING_COPY_OF_V4(space, function))

namespace gradring::kernels {

/// The copy of this process's level; a copy that is not compiled is null, and its level is never that of a process.
template <class Function>
Function* copy_to_run(Function* baseline, std::type_identity_t<Function>* v3, std::type_identity_t<Function>* v4) {
  switch (cpu_level()) {
    case CpuLevel::x86_64_v4: return v4;
    case CpuLevel::x86_64_v3: return v3;
    case CpuLevel::baseline: break;
  }
  return baseline;
}

}  // namespace gradring::kernels
#else
#define GRADRING_DECLARE_COPIES(Result, function) \
  inline namespace GRADRING_KERNEL_COPY {         \
  Result function();                              \
  }                                               \
  static_assert(true, "a semicolon follows")
#define GRADRING_COPY_TO_RUN_OF(space, function) (&space function)
#endif
#define GRADRING_COPY_TO_RUN(function) GRADRING_COPY_TO_RUN_OF(, function)
