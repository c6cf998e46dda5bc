// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_values.h"

#include <cstring>

#include "kernels/runtime/half.h"

namespace gradring::train {
namespace {

template <class Stored>
std::vector<double> read(const TensorRecord& tensor) {
  std::vector<double> values(tensor.bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + i * sizeof stored, sizeof stored);
    if constexpr (std::is_arithmetic_v<Stored>)
      values[i] = static_cast<double>(stored);
    else
      values[i] = kernels::to_float(stored);
  }
  return values;
}

}  // namespace

std::optional<std::vector<double>> values_of(const TensorRecord& tensor) {
  switch (tensor.type) {
    case TensorType::f32: return read<float>(tensor);
    case TensorType::f64: return read<double>(tensor);
    case TensorType::f16: return read<kernels::Half>(tensor);
    case TensorType::bf16: return read<kernels::BFloat16>(tensor);
    case TensorType::i8: return read<std::int8_t>(tensor);
    case TensorType::i16: return read<std::int16_t>(tensor);
    case TensorType::i32: return read<std::int32_t>(tensor);
    case TensorType::i64: return read<std::int64_t>(tensor);
    case TensorType::boolean:
    case TensorType::u8: return read<std::uint8_t>(tensor);
    case TensorType::u16: return read<std::uint16_t>(tensor);
    case TensorType::u32: return read<std::uint32_t>(tensor);
    case TensorType::u64: return read<std::uint64_t>(tensor);
    default: return std::nullopt;
  }
}

}  // namespace gradring::train
