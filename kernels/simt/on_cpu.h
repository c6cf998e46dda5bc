// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for the host compiler; included by kernels/simt/simt.h only.
#pragma once

// IWYU pragma: begin_exports
#include "kernels/simt/cpu/atomics.h"
#include "kernels/simt/cpu/barriers.h"
#include "kernels/simt/cpu/bfloat16.h"
#include "kernels/simt/cpu/half.h"
#include "kernels/simt/cpu/index.h"
#include "kernels/simt/cpu/language.h"
#include "kernels/simt/cpu/launch.h"
#include "kernels/simt/cpu/math.h"
#include "kernels/simt/cpu/memory.h"
#include "kernels/simt/cpu/range.h"
#include "kernels/simt/cpu/shared.h"
#include "kernels/simt/cpu/vector_types.h"
#include "kernels/simt/cpu/warp_functions.h"
#include "kernels/simt/cpu/wide_access.h"
#include "kernels/simt/cpu/wmma.h"
// IWYU pragma: end_exports
