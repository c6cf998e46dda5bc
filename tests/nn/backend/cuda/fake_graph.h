// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/nn/backend/cuda/fake_cudnn.h"

namespace gradring::tests {

/// What a descriptor holds; shared, as those that were given to others live on in them.
struct FakeDescriptor {
  cudnnBackendDescriptorType_t type{};
  bool finished = false;
  std::map<int, std::vector<std::byte>> values;
  std::map<int, std::vector<std::shared_ptr<FakeDescriptor>>> children;
  FakeEngine engine;  ///< of an engine, a configuration and a knob choice
  std::size_t knob = 0;

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const std::vector<std::byte>& bytes = values.at(name);
    std::vector<T> typed(bytes.size() / sizeof(T));
    std::memcpy(typed.data(), bytes.data(), bytes.size());
    return typed;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    return all<T>(name).at(0);
  }
  const FakeDescriptor& child(cudnnBackendAttributeName_t name) const { return *children.at(name).at(0); }
};

/// Where the tensors of a graph lie, by their numbers.
using FakeMemory = std::map<std::int64_t, void*>;

/// Whether these are the tensors that a finished graph reads or writes in memory, neither fewer nor more.
bool holds_exactly(const FakeMemory& memory, const FakeDescriptor& graph);

/// Computes a finished graph: a convolution, one of its gradients, a convolution with bias, or a pass of a batch
/// normalization.
///
/// Errors    std::exception if an attribute or a tensor is missing, or a pointer is less aligned than was promised.
void run_fake_graph(const FakeDescriptor& graph, const FakeMemory& memory);

}  // namespace gradring::tests
