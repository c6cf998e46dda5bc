// SPDX-License-Identifier: Apache-2.0
// System V ABI: rbx, rbp and r12 to r15 belong to the caller of a function; everything else the compiler has saved.
#include <cstdint>

#include "kernels/simt/engine/fiber.h"

extern "C" void gradring_simt_switch(void** save, void* load) noexcept;

asm(R"(
.text
.p2align 4
.type gradring_simt_switch,@function
.globl gradring_simt_switch
.hidden gradring_simt_switch
gradring_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gradring_simt_switch, .-gradring_simt_switch
)");

namespace gradring::simt::detail {

Context make_context(char* stack, std::size_t bytes, void (*entry)()) {
  constexpr int kSavedRegisters = 6;
  const auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
  auto* slot = reinterpret_cast<void**>(top);
  *--slot = nullptr;  // the return address of `entry`: ends backtraces, and leaves the stack aligned as after a call
  *--slot = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--slot = nullptr;
  return {static_cast<void*>(slot)};
}

void switch_context(Context& from, const Context& to) { gradring_simt_switch(&from.resume, to.resume); }

}  // namespace gradring::simt::detail
