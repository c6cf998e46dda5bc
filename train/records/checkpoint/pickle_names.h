// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

inline constexpr std::string_view kOrderedDict = "collections.OrderedDict";

/// What a pickle may do with a name.
enum class PickleName : std::uint8_t {
  unknown,
  constant,  ///< refer to it: "torch.FloatStorage", "torch.float32"
  function,  ///< also call it: "torch._utils._rebuild_tensor_v2", "torch.device"
};

/// The names that torch.load(weights_only=True) accepts by default, but for classes of tensors that PyTorch itself no
/// longer pickles.
///
/// Source    _get_allowed_globals of torch/_weights_only_unpickler.py, PyTorch 2.15.
PickleName pickle_name(std::string_view full_name);

/// The type that "torch.FloatStorage" or "torch.float32" stands for; nothing for any other name.
std::optional<TensorType> torch_type(std::string_view full_name);

/// "collections.OrderedDict" for the two parts of a name. Python 2, and protocol 2, say __builtin__ for builtins.
std::string full_pickle_name(std::string_view module, std::string_view name);

}  // namespace gradring::train
