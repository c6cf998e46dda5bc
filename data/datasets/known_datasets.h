// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "data/datasets/dataset_facts.h"

namespace gradring::data {

/// The names of the datasets whose shape and classes are the same everywhere: mnist, fashion-mnist, cifar10,
/// cifar100, digits.
std::span<const std::string_view> known_dataset_names();

/// What is known of one of them without its files; null for another name.
const DatasetFacts* find_known_dataset(std::string_view name);

/// Errors    InvalidArgument for a name that is not in known_dataset_names(); suggests the nearest.
const DatasetFacts& known_dataset(std::string_view name);

/// Errors    InvalidArgument: `name` is not one of `names`; suggests the nearest.
[[noreturn]] void throw_unknown_dataset(std::string_view name, std::span<const std::string_view> names);

}  // namespace gradring::data
