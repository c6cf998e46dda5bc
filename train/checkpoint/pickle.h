// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

/// Which of a pickle's values.
using PickleId = std::uint32_t;

/// One value of a pickle. What it is made of is named by id, since pickles share values.
struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,     ///< number: 0 or 1
    integer,     ///< number
    real,        ///< not kept
    text,        ///< text
    tuple,       ///< items
    list,        ///< items
    dictionary,  ///< items: key, value, key, value, ...; also an OrderedDict
    global,      ///< text: "torch.FloatStorage"
    call,        ///< text: the function that would have been called; items: the one tuple of its arguments
    persistent,  ///< items: the one value that names what lies outside the pickle
  };
  Kind kind = Kind::none;
  std::int64_t number = 0;
  std::string text = {};
  std::vector<PickleId> items = {};
};

struct Pickle {
  std::deque<PickleValue> values;
  PickleId root = 0;

  const PickleValue& at(PickleId id) const { return values[id]; }
};

/// What Python would need to execute becomes a value that says so: this reads the pickle of a PyTorch state_dict without
/// executing anything. It knows the opcodes that pickling dictionaries of tensors makes, by protocols 2 to 5, and these
/// names: collections.OrderedDict, torch._utils._rebuild_tensor_v2 and _rebuild_parameter, torch.FloatStorage and its
/// like.
///
/// Errors    CheckpointError with `path`: another opcode or another name, which it says; a pickle that is broken, or
///           above 4 MiB, or makes more than 262,144 values.
/// Cost      at most 64 MB, whatever the pickle says.
/// Source    Python's pickletools, which describes each opcode; torch._weights_only_unpickler, which knows as few.
Pickle read_pickle(std::string_view bytes, const std::filesystem::path& path);

}  // namespace gradring::train
