// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::simt::detail {

class Block;

/// The block that the calling OS thread runs; null outside of kernels and in kernels that run as plain loops.
Block* current_block();
void set_current_block(Block* block);

}  // namespace gradring::simt::detail
