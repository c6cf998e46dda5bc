// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/expression.h"
#include "nn/models/file_table.h"

namespace gradring::nn {

/// The kind of what stands for the layers of a block.
inline constexpr std::string_view kBlock = "block";

/// The most characters of a name: of a layer with those of its blocks, of a block or a parameter.
inline constexpr std::size_t kLongestName = 200;

/// A layer as a model file states it, or the use of a block.
struct FileLayer {
  std::string kind;
  FileText name;
  const toml::table* keys = nullptr;  ///< of the table that was read
  std::vector<std::size_t> reads;     ///< in its list: 0 is what the list reads, i + 1 its layer i
  std::vector<FileText> frozen;
  FileText block;  ///< its name, for kBlock
};

struct FileBlock {
  std::vector<std::string> parameters;
  std::vector<FileLayer> layers;
};

/// A model file before any size is known.
struct FileLayers {
  Values values;  ///< those given, and [parameters]
  std::map<std::string, FileBlock, std::less<>> blocks;
  std::vector<FileLayer> layers;
};

/// Checks all of a file but values of sizes and shapes: kinds, names and keys of layers, also in blocks that nothing
/// uses, and types of values. `file`, for messages, and `table` must outlive the result.
///
/// Errors    ModelFileError.
FileLayers read_file_layers(const std::string& file, const toml::table& table, Values given);

}  // namespace gradring::nn
