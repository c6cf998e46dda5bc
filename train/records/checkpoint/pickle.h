// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

/// The index of a value in a pickle.
using PickleId = std::uint32_t;

/// One value of a pickle. It refers to its parts by index, since pickles share values.
struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,     ///< number: 0 or 1
    integer,     ///< number
    real,        ///< real
    text,        ///< text
    tuple,       ///< items
    list,        ///< items
    dictionary,  ///< items: key, value, key, value, ...; also an OrderedDict
    global,      ///< text: "torch.FloatStorage"
    call,        ///< text: the function, which is not called; items: the tuple of its arguments
    persistent,  ///< items: the value that names an object outside the pickle
    other,       ///< text: what no tensor needs: "bytes", "a set", "an integer of more than 64 bits"
  };
  Kind kind = Kind::none;
  std::int64_t number = 0;
  double real = 0;
  std::string text = {};
  std::vector<PickleId> items = {};
};

struct Pickle {
  std::deque<PickleValue> values;
  PickleId root = 0;

  const PickleValue& at(PickleId id) const { return values[id]; }
};

/// Larger pickles are rejected.
constexpr std::size_t kLargestPickle = 4u << 20;

/// Reads a pickle of torch.save without executing anything: what Python would execute becomes a value of kind global or
/// call. It accepts the names of is_pickle_name, and the opcodes of protocols 2 to 5 that occur with them.
///
/// Errors    CheckpointError with `path`: another opcode or name, which it says; a pickle that is invalid, above 4 MiB,
///           or has more than 262,144 values.
/// Cost      at most 64 MB of memory, whatever the pickle says.
/// Source    Python's pickletools, which describes each opcode; torch/_weights_only_unpickler.py of PyTorch 2.15.
Pickle read_pickle(std::string_view bytes, const std::filesystem::path& path);

/// Whether a pickle may refer to a name: "torch.FloatStorage", "torch.float32". These are the names that
/// torch.load(weights_only=True) accepts by default, but for classes of tensors that PyTorch itself no longer pickles.
///
/// Source    _get_allowed_globals of torch/_weights_only_unpickler.py, PyTorch 2.15.
bool is_pickle_name(std::string_view full_name);
/// Whether it may also call it: "torch._utils._rebuild_tensor_v2", "torch.device".
bool is_pickle_function(std::string_view full_name);

inline constexpr std::string_view kOrderedDict = "collections.OrderedDict";

/// Reads the first of several pickles, and removes it from the front of `bytes`.
Pickle read_first_pickle(std::string_view& bytes, const std::filesystem::path& path);

/// The opcodes, named as pickletools names them.
// clang-format off
enum class PickleOpcode : std::uint8_t {
  mark = '(', stop = '.', none = 'N', new_true = 0x88, new_false = 0x89,
  int1 = 'K', int2 = 'M', int4 = 'J', long1 = 0x8a, real = 'G',
  text4 = 'X', text1 = 0x8c, text8 = 0x8d, string4 = 'T', string1 = 'U',
  bytes4 = 'B', bytes1 = 'C', bytes8 = 0x8e, bytearray8 = 0x96,
  empty_dict = '}', empty_list = ']', empty_tuple = ')', tuple = 't', tuple1 = 0x85, tuple2 = 0x86, tuple3 = 0x87,
  empty_set = 0x8f, add_items = 0x90, frozen_set = 0x91,
  append = 'a', appends = 'e', set_item = 's', set_items = 'u',
  global = 'c', stack_global = 0x93, reduce = 'R', build = 'b', persistent = 'Q',
  put1 = 'q', put4 = 'r', memoize = 0x94, get1 = 'h', get4 = 'j', protocol = 0x80, frame = 0x95,
};
// clang-format on

/// Writes a pickle of protocol 2, opcode by opcode. The caller is responsible for a valid order.
class PickleWriter {
 public:
  PickleWriter();

  void mark() { put(PickleOpcode::mark); }
  void text(std::string_view value);
  void integer(std::int64_t value);
  /// A tuple of integers.
  void integers(std::span<const std::int64_t> values);
  void none() { put(PickleOpcode::none); }
  void boolean(bool value) { put(value ? PickleOpcode::new_true : PickleOpcode::new_false); }
  void real(double value);
  void global(std::string_view module, std::string_view name);
  void empty_ordered_dict();
  void empty_dict() { put(PickleOpcode::empty_dict); }
  void empty_list() { put(PickleOpcode::empty_list); }
  void persistent() { put(PickleOpcode::persistent); }
  void call() { put(PickleOpcode::reduce); }
  /// Makes a tuple of everything since the mark.
  void end_tuple() { put(PickleOpcode::tuple); }
  /// Adds everything since the mark, keys and values in turn, to the dictionary below the mark.
  void end_items() { put(PickleOpcode::set_items); }
  /// Adds everything since the mark to the list below the mark.
  void end_appends() { put(PickleOpcode::appends); }
  std::string finish();

 private:
  void put(PickleOpcode opcode) { bytes_ += static_cast<char>(opcode); }

  std::string bytes_;
};

}  // namespace gradring::train
