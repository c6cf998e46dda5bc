// SPDX-License-Identifier: Apache-2.0
// POSIX ucontext. The parked state lies on the parked stack itself, so that Context is one pointer here too.
#include <ucontext.h>

#include <new>

#include "kernels/simt/engine/fiber.h"

namespace gradring::simt::detail {

Context make_context(char* stack, std::size_t bytes, void (*entry)()) {
  constexpr std::size_t kReserved = (sizeof(ucontext_t) + 63) / 64 * 64;
  const auto top = reinterpret_cast<std::size_t>(stack + bytes) & ~std::size_t{63};
  auto* state = new (reinterpret_cast<void*>(top - kReserved)) ucontext_t;
  getcontext(state);
  state->uc_stack.ss_sp = stack;
  state->uc_stack.ss_size = bytes - kReserved - 64;
  state->uc_link = nullptr;
  makecontext(state, entry, 0);
  return {state};
}

void switch_context(Context& from, const Context& to) {
  ucontext_t mine;
  from.resume = &mine;
  swapcontext(&mine, static_cast<const ucontext_t*>(to.resume));
}

}  // namespace gradring::simt::detail
