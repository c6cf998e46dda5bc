// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "nn/layers/layer_keys.h"
#include "nn/models/expression.h"

namespace gradring::nn {

/// A message with file and line, printable and at most some 1000 bytes long.
class ModelFileError : public InvalidArgument {
 public:
  ModelFileError(const std::string& file, std::size_t line, const std::string& reason);
};

/// "3.5", "'text'", "a list": a value for a message.
std::string shown(const toml::node& node);

/// A string of a file, and its line.
struct FileText {
  std::string text;
  std::size_t line = 0;
};

/// A table of a model file. It accepts the keys that were asked for; finish() rejects others.
class FileTable final : public LayerKeys {
 public:
  /// All of these must outlive it. `values` are those of names in expressions at the time of the question; null: not
  /// known yet, and integer() gives any value.
  FileTable(const std::string& file, const toml::table& table, const Values* values = nullptr)
      : file_(file), table_(table), values_(values) {}

  /// Whose keys they are, for messages: "conv1".
  void belongs_to(const std::string& owner) { owner_ = owner + ": "; }

  std::int64_t integer(std::string_view key, std::int64_t least, std::optional<std::int64_t> otherwise = {},
                       std::int64_t most = kMost) override;
  double number(std::string_view key, double least, double most, std::optional<double> otherwise = {}) override;
  bool flag(std::string_view key, bool otherwise) override;
  std::size_t choice(std::string_view key, std::span<const std::string_view> choices) override;

  /// Accepts a key that is not asked for yet.
  void accept(std::string_view key) { find(key); }
  bool has(std::string_view key) const { return table_.contains(key); }
  FileText text(std::string_view key, std::string_view expected = "a string");
  /// A list of strings; empty if the key is missing.
  std::vector<FileText> texts(std::string_view key);
  /// Null if the key is missing.
  const toml::table* table(std::string_view key);
  /// A list with at least one value.
  const toml::array& list(std::string_view key);

  /// The keys in the order of the file.
  std::vector<std::string> all() const;
  /// The line of a key, or of the table if it is missing.
  std::size_t line(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, const std::string& reason) const { fail_at(line(key), reason); }
  [[noreturn]] void fail_at(std::size_t line, const std::string& reason) const {
    throw ModelFileError(file_, line, owner_ + reason);
  }
  /// Errors    ModelFileError for a key that nobody asked for: lists those that are accepted, and the nearest.
  void finish() const;

 private:
  bool accepts(std::string_view key) const;
  const toml::node* find(std::string_view key);
  const toml::node& require(std::string_view key, std::string_view expected);
  [[noreturn]] void fail_type(std::string_view key, const toml::node& node, std::string_view expected) const;

  const std::string& file_;
  const toml::table& table_;
  const Values* values_;
  std::string owner_;
  std::vector<std::string> accepted_;
};

}  // namespace gradring::nn
