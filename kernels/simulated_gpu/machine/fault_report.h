// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// "gemm_mma_kernel<__half>"
std::string kernel_label(const ptx::Kernel& kernel);
/// "kernels/gemm/4_mma.cu:118: bar.sync 0;"
std::string describe_instruction(const Program& program, std::size_t position);
/// "thread (3, 0, 0) of block (1, 0, 0)"
std::string describe_thread(const Warp& warp, unsigned lane);
/// Of a thread of the same block, by its index.
std::string describe_thread_of_block(const Warp& warp, unsigned thread);

/// Throws the Fault "<what>, by thread ... of block ...\n   in <kernel>, <file>:<line>\n   <instruction>".
[[noreturn]] void report_fault(const Warp& warp, std::size_t position, unsigned lane, const std::string& what);

}  // namespace gradring::simulated_gpu
