// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/shared_memory.h"

#include <cstring>
#include <vector>

namespace gradring::simt::detail {
namespace {

constexpr int kPoison = 0xff;  // NaN in every floating-point format

SharedBytes allocate(std::size_t bytes) {
  return SharedBytes(static_cast<unsigned char*>(::operator new(bytes, std::align_val_t{kSharedAlignment})));
}

struct Variable {
  SharedBytes data;
  std::size_t bytes;
};

/// The SIMT_SHARED variables of one OS thread.
std::vector<Variable>& variables_of_this_thread() {
  static thread_local std::vector<Variable> variables;
  return variables;
}

}  // namespace

void DynamicShared::resize(std::size_t bytes) {
  if (bytes == bytes_) return;
  data_.reset();
  bytes_ = 0;
  if (bytes == 0) return;
  data_ = allocate(bytes);
  bytes_ = bytes;
}

void DynamicShared::poison() const {
  if (data_) std::memset(data_.get(), kPoison, bytes_);
}

void* own_shared_variable(std::size_t bytes) {
  Variable& variable = variables_of_this_thread().emplace_back(Variable{allocate(bytes), bytes});
  return std::memset(variable.data.get(), kPoison, bytes);
}

void poison_shared_variables() {
  for (const Variable& variable : variables_of_this_thread()) std::memset(variable.data.get(), kPoison, variable.bytes);
}

}  // namespace gradring::simt::detail
