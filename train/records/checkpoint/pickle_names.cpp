// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "train/records/checkpoint/pickle.h"
#include "train/records/checkpoint/tensor_record.h"

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
    // Storages and element types that no TensorType stands for.
    "torch.ComplexDoubleStorage",
    "torch.QInt8Storage",
    "torch.QUInt8Storage",
    "torch.QInt32Storage",
    "torch.QUInt4x2Storage",
    "torch.QUInt2x4Storage",
    "torch.complex32",
    "torch.complex128",
    "torch.qint8",
    "torch.quint8",
    "torch.qint32",
    "torch.quint4x2",
    "torch.quint2x4",
    "torch.bits8",
    "torch.bits16",
    "torch.bits1x8",
    "torch.bits2x4",
    "torch.bits4x2",
    "torch.float4_e2m1fn_x2",
};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

bool is_pickle_function(std::string_view full_name) { return contains(kFunctions, full_name); }

bool is_pickle_name(std::string_view full_name) {
  return is_pickle_function(full_name) || contains(kConstants, full_name) || torch_type(full_name).has_value();
}

}  // namespace gradring::train
