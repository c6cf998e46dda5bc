// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gradring/options.h>

#include <algorithm>

#include "train/app/api/api_call.h"
#include "train/core/config/options.h"
#include "train/options/usage_error.h"

namespace gradring {
inline namespace v1 {
namespace {

constexpr std::string_view kArguments[] = {"dataset", "data-dir", "model", "model-text"};

void check_value(std::string_view name, std::string_view value) {
  if (std::ranges::find(kArguments, name) != std::end(kArguments))
    throw train::UsageError(fmt::format("the option {} cannot be set: data and model are arguments of fit()", name));
  const train::TrainOption* option = train::find_option(name);
  if (option == nullptr)
    throw train::UsageError(fmt::format("there is no option '{}'.{}", name, train::nearest_option(name)));
  train::TrainConfig unused;
  option->read(unused, value);
}

}  // namespace

Options& Options::set(std::string_view name, std::string_view value) {
  train::api::run_api_call([&] { check_value(name, value); });
  values_.insert_or_assign(std::string(name), std::string(value));
  return *this;
}

Options& Options::set(std::string_view name, double value) { return set(name, fmt::format("{}", value)); }

Options& Options::config(const std::string& path) {
  config_ = path;
  return *this;
}

}  // namespace v1
}  // namespace gradring
