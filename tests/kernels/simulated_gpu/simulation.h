// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/memory/global_memory.h"
#include "kernels/simulated_gpu/ptx/machine_code.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// Memory of a GPU, 0 if not said otherwise, for the time of its life, aligned as cudaMalloc aligns it.
template <class T>
class DeviceArray {
 public:
  /// Memory that was not written.
  DeviceArray(GlobalMemory& memory, std::size_t count, int device = 0)
      : memory_(memory),
        count_(count),
        values_(static_cast<T*>(std::aligned_alloc(256, (count * sizeof(T) + 255) / 256 * 256))) {
    memory_.add(values_.get(), count * sizeof(T), device, false);
  }
  DeviceArray(GlobalMemory& memory, const std::vector<T>& values, int device = 0)
      : DeviceArray(memory, values.size(), device) {
    std::ranges::copy(values, values_.get());
    memory_.mark_written(address(), count_ * sizeof(T));
  }
  ~DeviceArray() { memory_.remove(values_.get()); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(values_.get()); }
  std::vector<T> values() const { return {values_.get(), values_.get() + count_}; }

 private:
  struct Free {
    void operator()(T* values) const { std::free(values); }
  };
  GlobalMemory& memory_;
  std::size_t count_;
  std::unique_ptr<T, Free> values_;
};

/// A kernel "test" of hand-written PTX, whose parameters are 64-bit numbers: %p0, %p1, ... in its text.
class TestKernel {
 public:
  /// `body`: declarations and instructions. `directives`: before the body, such as .maxntid 32.
  TestKernel(const std::string& body, std::size_t parameters, const std::string& directives = "");

  Counters run(GlobalMemory& memory, const std::vector<std::uint64_t>& parameters, Extent grid, Extent block,
               const ExecutionOptions& options = {}, std::size_t dynamic_shared_bytes = 0,
               std::uint64_t most_resident_blocks = 0, AccessLog* accesses = nullptr) const;
  /// The same, counted for a card of this name. `code`: what ptxas would have made of the kernel.
  LaunchCounts count(GlobalMemory& memory, const std::vector<std::uint64_t>& parameters, Extent grid, Extent block,
                     std::string_view card = "h100", const std::optional<ptx::CompiledKernel>& code = {}) const;
  /// The index of the first instruction whose text begins with `text`.
  std::size_t index_of(std::string_view text) const;

 private:
  ptx::Module module_;
  Executable executable_;
};

/// The text of the Fault that the function throws; empty if it throws none.
template <class F>
std::string fault_of(F f);

namespace detail {
/// The type of a register for a C++ type, and the one for ld and st.
template <class T>
constexpr const char* kRegisterType = std::is_same_v<T, float>    ? "f32"
                                      : std::is_same_v<T, double> ? "f64"
                                      : sizeof(T) == 2            ? "b16"
                                      : sizeof(T) == 4            ? "b32"
                                                                  : "b64";
/// Executes the instructions on columns of operands; `types` begins with that of %d, whose column is returned.
std::vector<std::byte> evaluate(const std::string& instructions, const std::vector<std::string>& types,
                                std::size_t cases, std::size_t result_bytes,
                                const std::vector<std::vector<std::byte>>& columns);
std::string fault_text(void (*call)(void*), void* context);
}  // namespace detail

/// What instructions make of registers %a, %b, %c: the values of %d, one thread for each case. They may use
/// predicates %q1 to %q4, and registers %rs1, %r1, %rd1 to %rd4.
///
/// Example   evaluate<float, float, float>("add.f32 %d, %a, %b;", {{1, 2}, {3, 4}})
template <class D, class... S>
std::vector<D> evaluate(const std::string& instructions, const std::vector<std::tuple<S...>>& cases) {
  std::vector<std::vector<std::byte>> columns(sizeof...(S));
  const auto append = [](std::vector<std::byte>& column, const auto& value) {
    column.resize(column.size() + sizeof value);
    std::memcpy(column.data() + column.size() - sizeof value, &value, sizeof value);
  };
  for (const auto& row : cases) {
    std::size_t i = 0;
    std::apply([&](const S&... values) { (append(columns[i++], values), ...); }, row);
  }
  const std::vector<std::byte> bytes =
      detail::evaluate(instructions, {detail::kRegisterType<D>, detail::kRegisterType<S>...}, cases.size(),
                       cases.size() * sizeof(D), columns);
  std::vector<D> results(cases.size());
  std::memcpy(results.data(), bytes.data(), bytes.size());
  return results;
}

template <class F>
std::string fault_of(F f) {
  return detail::fault_text([](void* context) { (*static_cast<F*>(context))(); }, &f);
}

}  // namespace gradring::simulated_gpu
