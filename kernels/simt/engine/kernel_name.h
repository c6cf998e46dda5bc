// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <typeinfo>

namespace gradring::simt {

namespace detail {
/// A type for each kernel: its name is in the type's.
template <auto Kernel>
struct KernelTag {};

/// Of a tag's type.
std::string name_in(const std::type_info& tag);
}  // namespace detail

/// A mangled name as C++ writes it; any other name as it is.
std::string demangled(const char* name);

/// The kernel's name with its template arguments, without namespaces, parameters and result:
/// "void a::(anonymous namespace)::sum_kernel<float, 4>(float const*)" is "sum_kernel<float, 4>".
std::string short_name_of(std::string_view demangled);

/// "relu_forward_flat_kernel<float>", by either compiler.
template <auto Kernel>
std::string kernel_name() {
  return detail::name_in(typeid(detail::KernelTag<Kernel>));
}

}  // namespace gradring::simt
