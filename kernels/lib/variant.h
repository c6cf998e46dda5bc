// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

/// Every operation has a namespace with the structs of its arguments, which are its contract, and:
///
///   void check_args(const Args&)       throws InvalidArgument if they break the contract; every variant calls it first
///   void reference_run(const Args&)    the truth: plain loops on the host, sums in double; synchronous, no workspace
///   Variant                            one implementation; KernelSet has the table of all
namespace gradring::kernels {

/// One implementation of an operation that has one pass.
template <class Args>
struct RunVariant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  bool (*supports)(const Device&, DType);  ///< where it is chosen
  bool (*computes)(DType) = nullptr;       ///< what it is right for on any device, if that is more
};

/// "unknown variant 'dirct': expected one of direct, tiled. Did you mean 'direct'?"
inline std::string no_such_variant(std::string_view name, std::span<const std::string_view> names) {
  std::string text = "unknown variant '" + std::string(name) + "': expected one of";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i ? ", " : " ") + std::string(names[i]);
  return text + "." + did_you_mean(name, names);
}

/// The variant of a table that a user named.
///
/// Errors    InvalidArgument if there is none: the message lists the names and the nearest one.
template <class Variant>
const Variant& find_variant(std::span<const Variant> table, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Variant& variant : table) {
    if (variant.name == name) return variant;
    names.push_back(variant.name);
  }
  throw InvalidArgument(no_such_variant(name, names));
}

/// Whether a variant may be named for `dtype` on a device: where it is chosen, and on a CPU for all types that it is
/// right for, as the execution model runs what was written for GPUs, slowly.
template <class Variant>
bool can_run(const Variant& variant, const Device& device, DType dtype) {
  if constexpr (requires { variant.computes; })
    if (variant.computes && device.id().kind == DeviceKind::cpu) return variant.computes(dtype);
  return variant.supports(device, dtype);
}

/// The last variant of a table that is chosen there: the highest step of its ladder.
///
/// Errors    InvalidArgument if none can.
template <class Variant>
const Variant& pick_variant(std::span<const Variant> table, const Device& device, DType dtype) {
  for (std::size_t i = table.size(); i-- > 0;)
    if (table[i].supports(device, dtype)) return table[i];
  throw InvalidArgument("no variant of this operation supports " + std::string(name_of(dtype)) + " on " +
                        device.id().to_string());
}

}  // namespace gradring::kernels
