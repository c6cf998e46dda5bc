// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/shared_memory.h"

#include <cstring>
#include <new>
#include <vector>

namespace gradring::simt::detail {
namespace {

constexpr std::align_val_t kAlignment{kSharedAlignment};
constexpr int kPoison = 0xff;  // NaN in every floating-point format

struct Variable {
  void* data;
  std::size_t bytes;
};

/// The SIMT_SHARED variables of one OS thread.
struct Variables {
  std::vector<Variable> all;
  ~Variables() {
    for (const Variable& variable : all) ::operator delete(variable.data, kAlignment);
  }
};

Variables& variables_of_this_thread() {
  static thread_local Variables variables;
  return variables;
}

}  // namespace

DynamicShared::~DynamicShared() { ::operator delete(data_, kAlignment); }

void DynamicShared::resize(std::size_t bytes) {
  if (bytes == bytes_) return;
  ::operator delete(data_, kAlignment);
  data_ = nullptr;
  bytes_ = 0;
  if (bytes == 0) return;
  data_ = static_cast<unsigned char*>(::operator new(bytes, kAlignment));
  bytes_ = bytes;
}

void DynamicShared::poison() const {
  if (data_) std::memset(data_, kPoison, bytes_);
}

void* own_shared_variable(std::size_t bytes) {
  void* data = ::operator new(bytes, kAlignment);
  std::memset(data, kPoison, bytes);
  variables_of_this_thread().all.push_back({data, bytes});
  return data;
}

void poison_shared_variables() {
  for (const Variable& variable : variables_of_this_thread().all) std::memset(variable.data, kPoison, variable.bytes);
}

}  // namespace gradring::simt::detail
