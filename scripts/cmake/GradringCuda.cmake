# SPDX-License-Identifier: Apache-2.0
set(GRADRING_CUDA_MISSING "being written")
