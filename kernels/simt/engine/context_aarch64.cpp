// SPDX-License-Identifier: Apache-2.0
// AAPCS64: x19 to x30 and the lower halves of v8 to v15 belong to the caller of a function.
#include <cstdint>

#include "kernels/simt/engine/fiber.h"

extern "C" void gradring_simt_switch(void** save, void* load) noexcept;

asm(R"(
.text
.p2align 4
.type gradring_simt_switch,%function
.globl gradring_simt_switch
.hidden gradring_simt_switch
gradring_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size gradring_simt_switch, .-gradring_simt_switch
)");

namespace gradring::simt::detail {

Context make_context(char* stack, std::size_t bytes, void (*entry)()) {
  constexpr int kSavedWords = 20;
  constexpr int kLinkRegister = 11;  // x30, where `ret` goes
  const auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
  auto* slots = reinterpret_cast<void**>(top) - kSavedWords;
  for (int i = 0; i < kSavedWords; ++i) slots[i] = nullptr;
  slots[kLinkRegister] = reinterpret_cast<void*>(entry);
  return {slots};
}

void switch_context(Context& from, const Context& to) { gradring_simt_switch(&from.resume, to.resume); }

}  // namespace gradring::simt::detail
