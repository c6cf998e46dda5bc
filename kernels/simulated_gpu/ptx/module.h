// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::ptx {

/// A type of PTX. `b` is a number of bits without a meaning; a predicate is one bit for each thread.
enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f32,
  f64
};
/// "f32"
std::string_view name_of(Type type);
/// none if there is no type of this name.
Type type_named(std::string_view name);
/// 0 for none and pred.
std::size_t bytes_of(Type type);

struct Operand {
  enum class Kind : std::uint8_t {
    reg,        ///< %r1
    immediate,  ///< 3, 0f3F800000
    special,    ///< %tid.x, WARP_SZ
    symbol,     ///< the address of a variable or parameter, plus `offset`
    parameter,  ///< the same of a parameter or result of a device function: `target`, of Kernel::call_parameters
    function,   ///< a device function: `target`, an index of Kernel::functions
    address,    ///< [%rd1+16]: parts[0], plus `offset`; of a tensor copy [map, {x, y}]: the map, then the coordinates
    vector,     ///< {%r1, %r2}: parts; also the labels of a .branchtargets, the results or parameters of a call
    pair,       ///< %r1|%p1, a second result: parts
    label,      ///< a position in the code: `target`
    sink,       ///< _: the value is dropped
  };
  Kind kind = Kind::sink;
  unsigned reg = 0;         ///< an index of Kernel::registers
  std::uint64_t bits = 0;   ///< of an immediate: two's complement, or as IEEE 754 in the width that was written
  bool is_float = false;    ///< of an immediate: written as 0f, 0d or 1.5
  bool is_double = false;   ///< of such an immediate: `bits` are those of a double (0d, 1.5)
  bool negated = false;     ///< of a predicate: !%p1
  std::string_view name;    ///< of a special register, symbol or label
  std::int64_t offset = 0;  ///< bytes
  std::size_t target = 0;   ///< of a label: an index of Kernel::code; its size: the end
  std::vector<Operand> parts;
};

/// The C++ line that an instruction comes from (.loc), as nvcc wrote it for -lineinfo. `line` 0: unknown.
struct Source {
  unsigned file = 0;  ///< an index of Module::files
  unsigned line = 0;
};

struct Instruction {
  struct Guard {
    unsigned reg = 0;
    bool negated = false;
  };
  std::optional<Guard> guard;           ///< @%p1, @!%p1
  std::string_view opcode;              ///< "ld.global.nc.v4.f32"
  std::vector<std::string_view> words;  ///< "ld", "global", "nc", "v4", "f32"
  std::vector<Operand> operands;
  std::string_view text;  ///< as in the module, from the guard to the semicolon
  Source source;
  Source called_from;  ///< the line of the kernel itself that called the inlined function of `source`; else `source`

  bool has(std::string_view word) const;
};

/// A parameter, or a variable in shared or local memory.
struct Variable {
  std::string_view name;
  std::size_t bytes = 0;
  std::size_t alignment = 1;
  std::size_t offset = 0;  ///< in the memory of its kind
};

/// A device function that a kernel calls, directly or through others.
struct Function {
  std::string_view name;  ///< mangled
  /// What mov takes for its address, and an indirect call understands. The same for all kernels of a module.
  std::uint64_t address = 0;
  bool is_defined = false;                           ///< else the runtime provides it: vprintf, malloc
  std::size_t begin = 0, end = 0;                    ///< its part of Kernel::code
  std::vector<std::size_t> results, parameters;      ///< indexes of Kernel::call_parameters
  std::size_t own_begin = 0, own_end = 0;            ///< bytes of call parameters: these, and those of its own calls
  std::size_t first_register = 0, end_register = 0;  ///< its part of Kernel::registers
  std::vector<Variable> local;                       ///< offsets from the begin of an activation's local memory
  std::size_t local_bytes = 0;
  bool is_recursive = false;  ///< it may be called again before it returns
};

/// Function::address of the function with this number, in the order of a module.
constexpr std::uint64_t address_of_function(std::size_t number) { return 16 * (std::uint64_t{number} + 1); }

/// A variable of a module in global or constant memory, of which each device has its own; `offset` has no meaning.
struct ModuleVariable : Variable {
  /// An address that the initial value holds.
  struct Reference {
    std::size_t at = 0;     ///< bytes into the variable
    std::size_t bytes = 8;  ///< of the address
    std::string_view name;  ///< of a variable or function of the module
    std::int64_t offset = 0;
  };
  bool is_constant = false;
  bool is_managed = false;         ///< one for the host and all devices
  bool is_extern = false;          ///< defined in another module
  std::vector<std::byte> initial;  ///< without the references, and without zeros at the end
  std::vector<Reference> references;
};

/// Where a program asks for more than the 8 that are portable.
inline constexpr std::uint64_t kMostBlocksOfACluster = 16;

struct Kernel {
  std::string_view name;  ///< mangled
  std::vector<Variable> parameters;
  std::size_t parameter_bytes = 0;
  std::vector<Type> registers;  ///< by index, in the order of their first use; names are resolved, scopes as well
  /// Offsets from the begin of static shared memory. Dynamic shared memory is behind it, as a variable of 0 bytes.
  std::vector<Variable> shared;
  std::size_t static_shared_bytes = 0;  ///< up to dynamic shared memory, if there is some
  bool uses_dynamic_shared = false;
  std::vector<Variable> local;  ///< offsets from the begin of a thread's local memory
  std::size_t local_bytes = 0;
  unsigned most_threads = 0;  ///< .maxntid or .reqntid as a product; 0: not stated
  /// .reqnctapercluster: the blocks of a cluster on each axis; 0: not stated.
  std::array<unsigned, 3> cluster{};
  bool has_explicit_cluster = false;  ///< .explicitcluster
  std::vector<Instruction> code;  ///< of the functions, those that are called before their callers, then the kernel's
  std::size_t entry = 0;          ///< where the kernel's own code begins
  std::vector<Function> functions;
  /// Parameters and results of functions and of calls: offsets in a memory of each thread.
  std::vector<Variable> call_parameters;
  std::size_t call_parameter_bytes = 0;
};

/// The kernels of one PTX module. Their bodies are read when they are asked for: a program has hundreds, and a run
/// needs few.
///
/// Errors    PtxError with line and text, for what is not PTX or not known here.
/// Threads   any.
/// Source    PTX ISA 9.0, NVIDIA 2025.
class Module {
 public:
  explicit Module(std::string text);
  ~Module();
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;

  /// "9.0"
  std::string_view version() const;
  /// "sm_90a"
  std::string_view target() const;
  /// The paths of .file; index 0 is unused, as PTX counts from 1.
  const std::vector<std::string_view>& files() const;
  /// Mangled names.
  std::vector<std::string_view> kernel_names() const;
  /// Function::address; 0 for an unknown name.
  std::uint64_t function_address(std::string_view name) const;
  /// Null for an unknown name. Valid as long as the module.
  const Kernel* kernel(std::string_view name) const;
  /// The line of each instruction of a kernel's code in the text of the module, from 1.
  std::vector<unsigned> lines_of(const Kernel& kernel) const;
  /// Those in global and constant memory.
  const std::vector<ModuleVariable>& variables() const;
  /// An index of variables(); nothing for an unknown name.
  std::optional<std::size_t> variable_named(std::string_view name) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gradring::ptx
