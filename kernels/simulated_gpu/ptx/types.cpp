// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::ptx {
namespace {

struct Row {
  std::string_view name;
  std::size_t bytes = 0;
};

/// By Type.
constexpr Row kTypes[] = {{"none", 0}, {"pred", 0}, {"b8", 1},  {"b16", 2},  {"b32", 4}, {"b64", 8},
                          {"u8", 1},   {"u16", 2},  {"u32", 4}, {"u64", 8},  {"s8", 1},  {"s16", 2},
                          {"s32", 4},  {"s64", 8},  {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
static_assert(std::size(kTypes) == static_cast<std::size_t>(Type::f64) + 1);

}  // namespace

std::string_view name_of(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }

Type type_named(std::string_view name) {
  const auto row = std::ranges::find(kTypes, name, &Row::name);
  return row == std::end(kTypes) ? Type::none : static_cast<Type>(row - kTypes);
}

std::size_t bytes_of(Type type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

bool Instruction::has(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

}  // namespace gradring::ptx
