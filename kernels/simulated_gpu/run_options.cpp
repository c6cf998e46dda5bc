// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/run_options.h"

#include <nlohmann/json.hpp>

#include "kernels/base/error.h"

namespace gradring::simulated_gpu {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string& what) {
  throw InvalidArgument(std::string(kRunOptionsVariable) + ": " + what);
}

/// Calls visit(key, value) for each option.
template <class Options, class Visit>
void for_each_option(Options& options, const Visit& visit) {
  visit("gpu", options.gpu);
  visit("gpus", options.gpus);
  visit("seed", options.seed);
  visit("threads", options.threads);
  visit("counters", options.counters);
  visit("kernel", options.kernel);
  visit("time_limit_s", options.time_limit_s);
  visit("json", options.json);
  visit("record", options.record);
  visit("error_exitcode", options.error_exitcode);
  visit("suppressions", options.suppressions);
  visit("formal", options.formal);
}

template <class T>
void read_into(T& option, const json& value) {
  value.get_to(option);
}

template <class T>
void read_into(std::optional<T>& option, const json& value) {
  option = value.get<T>();
}

template <class T>
json value_of(const T& option) {
  return option;
}

template <class T>
json value_of(const std::optional<T>& option) {
  return option ? json(*option) : json();
}

void check_range(const RunOptions& options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) fail(what);
  };
  require(options.gpus >= 1, "gpus must be at least 1");
  require(options.threads >= 1, "threads must be at least 1");
  require(!options.time_limit_s || *options.time_limit_s > 0, "time_limit_s must be above 0");
  require(!options.error_exitcode || (*options.error_exitcode >= 0 && *options.error_exitcode <= 255),
          "error_exitcode must be 0 to 255");
}

}  // namespace

std::string text_of(const RunOptions& options) {
  const json defaults = [] {
    json made = json::object();
    const RunOptions unset;
    for_each_option(unset, [&](const char* key, const auto& option) { made[key] = value_of(option); });
    return made;
  }();
  json made = json::object();
  for_each_option(options, [&](const char* key, const auto& option) {
    if (json value = value_of(option); value != defaults[key]) made[key] = std::move(value);
  });
  return made.dump();
}

RunOptions run_options_from(const std::string& text) {
  json given = json::parse(text, nullptr, false);
  if (!given.is_object()) fail("not a JSON object: " + text);
  RunOptions options;
  for_each_option(options, [&](const char* key, auto& option) {
    const auto found = given.find(key);
    if (found == given.end()) return;
    try {
      read_into(option, *found);
    } catch (const json::exception&) {
      fail(std::string(key) + " cannot be " + found->dump());
    }
    given.erase(found);
  });
  if (!given.empty()) fail("unknown option " + given.begin().key());
  check_range(options);
  return options;
}

}  // namespace gradring::simulated_gpu
