// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/current.h"

namespace gradring::simt::detail {
namespace {

thread_local constinit Block* running_block = nullptr;

}  // namespace

Block* current_block() { return running_block; }
void set_current_block(Block* block) { running_block = block; }

}  // namespace gradring::simt::detail
