// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gradring {
inline namespace v1 {

/// The settings of a training: all options of `gradring train` by their names, without dashes (`gradring train --help`),
/// but for dataset, data-dir and model, which are arguments of fit().
///
/// What is not set has the value of its variable (GRADRING_BATCH_SIZE), of the file of config(), or the default of
/// `gradring train`. Only `progress` differs: it is "none", so that nothing is printed.
///
/// Example   options.set("epochs", 3).set("lr", 0.01).set("optimizer", "sgd").set("nprocs", 2);
class Options {
 public:
  /// Errors    Error for an unknown name (with the nearest), or a value that the option does not take.
  Options& set(std::string_view name, std::string_view value);
  Options& set(std::string_view name, double value);
  Options& set(std::string_view name, const char* value) { return set(name, std::string_view(value)); }
  template <std::integral Number>
  Options& set(std::string_view name, Number value) {
    if constexpr (std::same_as<Number, bool>) return set(name, std::string_view(value ? "true" : "false"));
    return set(name, std::string_view(std::to_string(value)));
  }
  /// A TOML file of options: `batch-size = 64`. It is read by fit() and evaluate().
  Options& config(const std::string& path);

  /// What set() got, by name.
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }
  /// The path of config(); empty: none.
  const std::string& config_file() const { return config_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::string config_;
};

}  // namespace v1
}  // namespace gradring
