// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/pickle_names.h"

#include <algorithm>

namespace gradring::train {
namespace {

constexpr std::string_view kFunctions[] = {
    kOrderedDict,
    "collections.Counter",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_wrapper_subclass",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._tensor._rebuild_from_type_v2",
    "torch.serialization._get_layout",
    "torch.Size",
    "torch.device",
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.set",
    "builtins.complex",
};

constexpr std::string_view kConstants[] = {
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.storage.UntypedStorage",
    "torch.storage.TypedStorage",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
    "torch.per_channel_affine",
    "torch.per_channel_symmetric",
    "torch.per_channel_affine_float_qparams",
};

/// Storages and element types that no TensorType stands for.
constexpr std::string_view kOtherTypes[] = {"ComplexDoubleStorage",
                                            "QInt8Storage",
                                            "QUInt8Storage",
                                            "QInt32Storage",
                                            "QUInt4x2Storage",
                                            "QUInt2x4Storage",
                                            "complex32",
                                            "complex128",
                                            "qint8",
                                            "quint8",
                                            "qint32",
                                            "quint4x2",
                                            "quint2x4",
                                            "bits8",
                                            "bits16",
                                            "bits1x8",
                                            "bits2x4",
                                            "bits4x2",
                                            "float4_e2m1fn_x2"};

constexpr std::string_view kTorch = "torch.";

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

PickleName pickle_name(std::string_view full_name) {
  if (contains(kFunctions, full_name)) return PickleName::function;
  const bool is_type = torch_type(full_name) ||
                       (full_name.starts_with(kTorch) && contains(kOtherTypes, full_name.substr(kTorch.size())));
  return is_type || contains(kConstants, full_name) ? PickleName::constant : PickleName::unknown;
}

std::optional<TensorType> torch_type(std::string_view full_name) {
  if (!full_name.starts_with(kTorch)) return std::nullopt;
  const std::string_view name = full_name.substr(kTorch.size());
  const auto of_storage = find_type(&TensorTypeNames::torch, name);
  return of_storage ? of_storage : find_type(&TensorTypeNames::torch_dtype, name);
}

std::string full_pickle_name(std::string_view module, std::string_view name) {
  return std::string(module == "__builtin__" ? "builtins" : module) + "." + std::string(name);
}

}  // namespace gradring::train
