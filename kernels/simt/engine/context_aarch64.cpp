// SPDX-License-Identifier: Apache-2.0
// AAPCS64: x19 to x30 and the lower halves of v8 to v15 belong to the caller of a function.
#include <cstdint>

#include "kernels/simt/engine/fiber.h"

extern "C" void gradring_simt_switch(void** save, void* load) noexcept;

asm(R"(
.text
.macro callee_saved op  // stp or ldp
  \op x19, x20, [sp]
  \op x21, x22, [sp, #16]
  \op x23, x24, [sp, #32]
  \op x25, x26, [sp, #48]
  \op x27, x28, [sp, #64]
  \op x29, x30, [sp, #80]
  \op d8, d9, [sp, #96]
  \op d10, d11, [sp, #112]
  \op d12, d13, [sp, #128]
  \op d14, d15, [sp, #144]
.endm
.p2align 4
.type gradring_simt_switch,%function
.globl gradring_simt_switch
.hidden gradring_simt_switch
gradring_simt_switch:
  sub sp, sp, #160
  callee_saved stp
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  callee_saved ldp
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
