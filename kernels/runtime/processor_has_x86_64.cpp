// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/processor_has.h"

namespace gradring::kernels {
namespace {

bool has_x86_64_v2() {
  return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
         __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

/// The compilers' lists of names lack F16C, LZCNT and MOVBE, which every processor with AVX2 has.
bool has_x86_64_v3() {
  return has_x86_64_v2() && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
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
