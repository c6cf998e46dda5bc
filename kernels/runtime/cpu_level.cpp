// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cpu_level.h"

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"

namespace gradring::kernels {
namespace {

#ifdef GRADRING_CPU_LEVELS
constexpr std::array kLevels = {CpuLevel::baseline, CpuLevel::x86_64_v3, CpuLevel::x86_64_v4};
#else
constexpr std::array kLevels = {CpuLevel::baseline};
#endif

#ifdef __x86_64__
bool has_x86_64_v2() {
  return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
         __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

bool has_x86_64_v3() {
  return has_x86_64_v2() && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool has_x86_64_v4() {
  return has_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

/// What the compiler was allowed to use in this file, which is compiled as everything outside the copies is.
#if defined(__AVX512VL__)
constexpr CpuLevel kCompiledFor = CpuLevel::x86_64_v4;
constexpr std::string_view kCompiledForName = "x86-64-v4";
#elif defined(__AVX2__)
constexpr CpuLevel kCompiledFor = CpuLevel::x86_64_v3;
constexpr std::string_view kCompiledForName = "x86-64-v3";
#else
constexpr CpuLevel kCompiledFor = CpuLevel::baseline;
constexpr std::string_view kCompiledForName = "x86-64-v2";
#endif

bool has(CpuLevel level) {
  switch (level) {
    case CpuLevel::x86_64_v4: return has_x86_64_v4();
    case CpuLevel::x86_64_v3: return has_x86_64_v3();
    case CpuLevel::baseline: return has_x86_64_v2();
  }
  return false;
}

bool has_baseline() { return has(kCompiledFor); }
#else
constexpr std::string_view kCompiledForName = "aarch64";
bool has(CpuLevel level) { return level == CpuLevel::baseline; }
bool has_baseline() { return true; }
#endif

/// "native x86-64-v4": names that differ for builds whose results may.
std::string name_of_baseline() {
  const std::string_view architecture = GRADRING_ARCH_NAME;
  if (kLevels.size() > 1 || architecture == kCompiledForName) return std::string(kCompiledForName);
  return std::string(architecture) + " " + std::string(kCompiledForName);
}

}  // namespace

std::span<const CpuLevel> cpu_levels() { return kLevels; }

std::string_view cpu_level_name(CpuLevel level) {
  static const std::string baseline = name_of_baseline();
  switch (level) {
    case CpuLevel::x86_64_v4: return "x86-64-v4";
    case CpuLevel::x86_64_v3: return "x86-64-v3";
    case CpuLevel::baseline: break;
  }
  return baseline;
}

CpuLevel choose_cpu_level(CpuLevel supported, std::optional<std::string_view> requested) {
  if (!requested) return supported;
  std::vector<std::string_view> names;
  for (const CpuLevel level : kLevels) {
    names.push_back(cpu_level_name(level));
    if (names.back() != *requested) continue;
    if (level <= supported) return level;
    throw DeviceError(std::string(kCpuLevelVariable) + " is " + std::string(*requested) +
                      ", but this processor has no more than " + std::string(cpu_level_name(supported)) +
                      ": unset it, or set a lower level");
  }
  std::string message = std::string(kCpuLevelVariable) + " is '" + std::string(*requested) +
                        "', which is no level of this build." + did_you_mean(*requested, names) + " Levels:";
  for (const std::string_view name : names) message += " " + std::string(name);
  throw InvalidArgument(message);
}

CpuLevel supported_cpu_level() {
  if (!has_baseline())
    throw DeviceError("this program was compiled for " + name_of_baseline() +
                      ", which this processor lacks: build it on this machine with -DGRADRING_ARCH=native");
  CpuLevel highest = CpuLevel::baseline;
  for (const CpuLevel level : kLevels)
    if (has(level)) highest = level;
  return highest;
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const char* requested = std::getenv(kCpuLevelVariable);
    return choose_cpu_level(supported_cpu_level(),
                            requested ? std::optional<std::string_view>(requested) : std::nullopt);
  }();
  return level;
}

}  // namespace gradring::kernels
