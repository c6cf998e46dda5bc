// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/on_simulated_gpu/host_heap.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace gradring::tests {
namespace {

using simulated_gpu::GlobalMemory;
using simulated_gpu::PageableMemory;

/// For what notes the blocks, which `new` would note again.
template <class T>
struct Malloc {
  using value_type = T;
  Malloc() = default;
  template <class U>
  explicit Malloc(const Malloc<U>&) {}
  T* allocate(std::size_t count) {
    if (void* const data = std::malloc(count * sizeof(T))) return static_cast<T*>(data);
    throw std::bad_alloc();
  }
  void deallocate(T* data, std::size_t) { std::free(data); }
  bool operator==(const Malloc&) const { return true; }
};

struct Block {
  std::size_t bytes = 0;
  bool is_used = false;  // by a simulated GPU
};

class HostHeap final : public PageableMemory {
 public:
  Range find(const void* address) override {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    if (at - stack_begin_ < stack_bytes_) return {reinterpret_cast<const void*>(stack_begin_), stack_bytes_};
    auto block = blocks_.upper_bound(at);
    if (block == blocks_.begin()) return {};
    --block;
    if (at - block->first >= block->second.bytes) return {};
    block->second.is_used = true;
    return {reinterpret_cast<const void*>(block->first), block->second.bytes};
  }

  void add(void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    blocks_.insert_or_assign(reinterpret_cast<std::uintptr_t>(data), Block{bytes});
  }
  /// Whether a simulated GPU used it.
  bool remove(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
    if (found == blocks_.end()) return false;
    const bool is_used = found->second.is_used;
    blocks_.erase(found);
    return is_used;
  }
  void note_stack() {
    pthread_attr_t attributes;
    void* begin = nullptr;
    std::size_t bytes = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
    ::pthread_attr_getstack(&attributes, &begin, &bytes);
    ::pthread_attr_destroy(&attributes);
    stack_begin_ = reinterpret_cast<std::uintptr_t>(begin);
    stack_bytes_ = bytes;
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, Block, std::less<>, Malloc<std::pair<const std::uintptr_t, Block>>> blocks_;
  std::uintptr_t stack_begin_ = 0;
  std::size_t stack_bytes_ = 0;
};

/// Never destroyed, as blocks are freed until the process ends.
HostHeap& heap() {
  alignas(HostHeap) static std::byte storage[sizeof(HostHeap)];
  static HostHeap* const only = new (storage) HostHeap;
  return *only;
}

std::atomic<GlobalMemory*> told{nullptr};

void* allocate(std::size_t bytes, std::size_t alignment) {
  bytes = std::max<std::size_t>(bytes, 1);
  void* const data = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                         ? std::malloc(bytes)
                         : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!data) throw std::bad_alloc();
  heap().add(data, bytes);
  return data;
}

void release(void* data) noexcept {
  if (!data) return;
  if (heap().remove(data))
    if (GlobalMemory* const memory = told) memory->remove(data);
  std::free(data);
}

}  // namespace

PageableMemory& host_heap() {
  heap().note_stack();
  return heap();
}

void tell_when_freed(GlobalMemory& memory) { told = &memory; }

}  // namespace gradring::tests

// The other forms of the standard library call these.
void* operator new(std::size_t bytes) { return gradring::tests::allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return gradring::tests::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { gradring::tests::release(data); }
void operator delete(void* data, std::align_val_t) noexcept { gradring::tests::release(data); }
void operator delete(void* data, std::size_t) noexcept { gradring::tests::release(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { gradring::tests::release(data); }
