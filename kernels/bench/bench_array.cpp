// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/bench_array.h"

#include <cstring>

#include "kernels/lib/host_values.h"

namespace gradring::kernels::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);

}  // namespace

BenchArray::BenchArray(Device& device, DType dtype, std::span<const double> start)
    : dtype_(dtype),
      elements_(start.size()),
      start_(device.allocate(bytes(), MemoryKind::pinned)),
      host_(device.allocate(bytes(), MemoryKind::pinned)),
      device_(device.allocate(bytes())) {
  lib::write_values(dtype, start_.data(), start);
}

void BenchArray::reset(Stream& stream) {
  std::memcpy(host_.data(), start_.data(), bytes());
  stream.enqueue_copy(device_.data(), start_.data(), bytes());
  stream.synchronize(Deadline::after(kPatience));
}

std::vector<double> BenchArray::values(Side side, Stream& stream) const {
  if (side == Side::host) return lib::read_values(dtype_, host_.data(), elements_);
  std::vector<std::byte> copy(bytes());
  stream.enqueue_copy(copy.data(), device_.data(), bytes());
  stream.synchronize(Deadline::after(kPatience));
  return lib::read_values(dtype_, copy.data(), elements_);
}

}  // namespace gradring::kernels::bench
