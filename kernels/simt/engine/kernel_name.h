// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <typeinfo>

#include "kernels/base/printable.h"

namespace gradring::simt {

namespace detail {
/// A type for each kernel: its name is in the type's.
template <auto Kernel>
struct KernelTag {};

/// Of a tag's type.
std::string name_in(const std::type_info& tag);
}  // namespace detail

using gradring::demangled;

/// The kernel's name with its template arguments, without namespaces, parameters and result:
/// "void a::(anonymous namespace)::sum_kernel<float, 4>(float const*)" is "sum_kernel<float, 4>".
std::string short_name_of(std::string_view demangled);

/// "relu_forward_flat_kernel<float>", by either compiler.
template <auto Kernel>
std::string kernel_name() {
  return detail::name_in(typeid(detail::KernelTag<Kernel>));
}

}  // namespace gradring::simt
