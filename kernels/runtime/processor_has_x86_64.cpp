// SPDX-License-Identifier: Apache-2.0
#include <cpuid.h>

#include "kernels/runtime/cpu_level.h"

namespace gradring::kernels {
namespace {

/// Bits of CPUID that older compilers' __builtin_cpu_supports does not know by name.
struct Extensions {
  bool cmpxchg16b = false, movbe = false, f16c = false, lahf = false, lzcnt = false;

  Extensions() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
      cmpxchg16b = (ecx & bit_CMPXCHG16B) != 0;
      movbe = (ecx & bit_MOVBE) != 0;
      f16c = (ecx & bit_F16C) != 0;
    }
    if (__get_cpuid(0x8000'0001, &eax, &ebx, &ecx, &edx) != 0) {
      lahf = (ecx & 1u) != 0;
      lzcnt = (ecx & 1u << 5) != 0;
    }
  }
};

bool has_x86_64_v2() {
  const Extensions more;
  return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
         __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") && more.cmpxchg16b && more.lahf;
}

/// "avx" includes that the operating system saves the wider registers.
bool has_x86_64_v3() {
  const Extensions more;
  return has_x86_64_v2() && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         more.movbe && more.f16c && more.lzcnt;
}

bool has_x86_64_v4() {
  return has_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

bool processor_has(std::string_view name) {
  if (name == "x86-64-v2") return has_x86_64_v2();
  if (name == "x86-64-v3") return has_x86_64_v3();
  if (name == "x86-64-v4") return has_x86_64_v4();
  return true;
}

}  // namespace gradring::kernels
