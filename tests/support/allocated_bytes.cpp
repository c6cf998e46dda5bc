// SPDX-License-Identifier: Apache-2.0
#include "tests/support/allocated_bytes.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace gradring::tests {
namespace {

std::atomic<std::size_t> g_now{0};
std::atomic<std::size_t> g_peak{0};

void* counted(void* memory) {
  if (!memory) throw std::bad_alloc();
  const std::size_t now = g_now += malloc_usable_size(memory);
  std::size_t peak = g_peak;
  while (now > peak && !g_peak.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

}  // namespace

void* allocate(std::size_t bytes) { return counted(std::malloc(bytes)); }

void* allocate_aligned(std::size_t bytes, std::align_val_t alignment) {
  const auto multiple = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(multiple, (bytes + multiple - 1) / multiple * multiple));
}

void release(void* memory) {
  if (memory) g_now -= malloc_usable_size(memory);
  std::free(memory);
}

std::size_t allocated_bytes() { return g_now; }
std::size_t peak_allocated_bytes() { return g_peak; }
void reset_peak_allocated_bytes() { g_peak = g_now.load(); }

}  // namespace gradring::tests

void* operator new(std::size_t bytes) { return gradring::tests::allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return gradring::tests::allocate_aligned(bytes, alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return gradring::tests::allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return gradring::tests::allocate_aligned(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { gradring::tests::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { gradring::tests::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { gradring::tests::release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { gradring::tests::release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { gradring::tests::release(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  gradring::tests::release(memory);
}
