// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace gradring::kernels {

/// Whether this processor, and the operating system on it, run code compiled with -march=`name`: "x86-64-v2" to
/// "x86-64-v4". Any other name is taken to be this processor's own.
bool processor_has(std::string_view name);

/// Which copy of the hot code runs on this processor.
///
/// The program is compiled for the oldest processors that it supports; a listed set of hot sources
/// (gradring_level_sources in the CMakeLists) is compiled once more for each higher level of the instruction set. A
/// level is chosen once a process: the highest that the processor has, or a lower one by GRADRING_CPU_LEVEL. A build
/// for one processor (-DGRADRING_ARCH=native), a build with sanitizers, and processors other than x86-64 have one level
/// only.

/// Each level contains those before it.
enum class CpuLevel {
  baseline,   ///< what the whole program is compiled for: x86-64-v2 in the default build
  x86_64_v3,  ///< AVX2, FMA, F16C, BMI
  x86_64_v4,  ///< AVX-512 F, BW, CD, DQ, VL
};

/// The environment variable that selects a lower level.
inline constexpr const char* kCpuLevelVariable = "GRADRING_CPU_LEVEL";

/// The levels of this build, lowest first; their names are those of cpu_level_name.
std::vector<CpuLevel> cpu_levels();

/// "x86-64-v3"; of a build with one level, the -march that it was compiled with: "znver4", "armv8-a".
std::string_view cpu_level_name(CpuLevel level);

/// The level to run: `requested` by its name, or `supported` if nothing is requested.
///
/// Errors    InvalidArgument if the build has no level of that name; DeviceError if the processor lacks it.
CpuLevel choose_cpu_level(CpuLevel supported, std::optional<std::string_view> requested);

/// The highest level of this build that the processor has.
///
/// Errors    DeviceError if it lacks even the baseline.
CpuLevel supported_cpu_level();

/// The level that this process runs, chosen at the first call and fixed from then on. An empty variable selects
/// nothing.
///
/// Errors    those of supported_cpu_level and choose_cpu_level.
/// Threads   safe.
CpuLevel cpu_level();

}  // namespace gradring::kernels
