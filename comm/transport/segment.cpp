// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/base/error.h"

namespace gradring::comm {

std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  auto* data = static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow));
  if (!data)
    throw DeviceError(fmt::format("cannot allocate a segment of {} bytes: out of memory; use smaller buckets", bytes));
  std::memset(data, 0, bytes);
  return {data, [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
}

}  // namespace gradring::comm
