// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::nn {

/// oneDNN's own variables that limit its instructions; if one is set, GRADRING_CPU_LEVEL does not limit oneDNN.
inline constexpr const char* kOneDnnLimits[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};

/// Sets the number of threads that oneDNN uses for work of the calling thread, and starts them. If they cannot be
/// started, the OpenMP runtime ends the process; then it ends with exit code 3 and a message that names the limits.
void set_onednn_threads(unsigned threads);

/// Variables that say how OpenMP's threads wait for each other: the standard's, libgomp's, and that of LLVM's libomp.
inline constexpr const char* kOpenmpWaitVariables[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};

/// Lets the runtime of OpenMP read its environment variables, if it does so at its first use (LLVM's).
void read_openmp_environment();

bool has_onednn();

/// "oneDNN 2.6.3", or what to install.
std::string describe_onednn();

}  // namespace gradring::nn
