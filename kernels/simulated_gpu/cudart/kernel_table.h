// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/ptx/fat_binary.h"
#include "kernels/simulated_gpu/ptx/machine_code.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// A kernel for one compute capability.
struct LoadedKernel {
  const ptx::Module& module;
  const ptx::Kernel& kernel;
  int compute_capability = 0;  ///< of its PTX
  std::shared_ptr<const Executable> executable;
  std::optional<ptx::CompiledKernel>
      code;  ///< what ptxas made of it; nothing if the program has no code for such devices
  std::span<const std::byte> cubin = {};  ///< the file that `code` was read from
};

/// A variable for one compute capability.
struct LoadedVariable {
  const ptx::Module& module;
  std::size_t index = 0;  ///< of Module::variables()
  std::size_t bytes = 0;
};

/// The kernels and variables of a program: what nvcc's code registers before main, read and translated when a kernel is
/// used for the first time.
///
/// Threads   any.
class KernelTable {
 public:
  /// A fat binary of nvcc's; returns its handle.
  void** add_binary(const void* wrapper);
  /// `host` is the address by which the program names the kernel `name` (mangled) of a binary.
  void add_kernel(void** binary, const void* host, const char* name);

  /// The same for a variable in global or constant memory.
  void add_variable(void** binary, const void* host, const char* name, std::size_t bytes);
  /// The same for a managed variable: the program reads its address from `slot`.
  void add_managed_variable(void** binary, void** slot, const char* name, std::size_t bytes);

  /// The name of a kernel as C++ has it; for messages.
  std::string name_of(const void* host) const;

  /// A kernel for devices of this compute capability (90), from the newest PTX that they take; PTX of compute_90a is
  /// for 9.0 alone, and preferred there.
  ///
  /// Errors    Misuse: no such kernel, no PTX for such devices, or something in it that is not simulated.
  const LoadedKernel& load(const void* host, int compute_capability);

  /// The same for a variable.
  ///
  /// Errors    Misuse: no such variable, or no PTX with it.
  LoadedVariable load_variable(const void* host, int compute_capability);
  /// The modules of a binary for such devices that define its managed variables.
  std::vector<const ptx::Module*> modules_of(void** binary, int compute_capability);
  /// A variable that `module` declares as extern, in another module of the same binary and target; `bytes` is 0.
  std::optional<LoadedVariable> definition(const ptx::Module& module, std::string_view name) const;
  struct ManagedVariable {
    const char* name = nullptr;
    void** slot = nullptr;
  };
  /// What the binary of a module registered.
  std::vector<ManagedVariable> managed_variables(const ptx::Module& module) const;

  /// That the program has PTX for such a card: it lacks all, and no kernel could be launched, if it was built for newer
  /// ones alone.
  ///
  /// Errors    InvalidArgument: which it has, and how to build it.
  void check_card(const Card& card);

  /// The names of the kernels that no call has loaded yet; for tests.
  std::vector<std::string> unused() const;
  std::size_t size() const;

 private:
  struct Text {
    int compute_capability = 0;
    std::string text;                     // until it is read
    std::unique_ptr<ptx::Module> module;  // null until then
  };
  struct Code {
    int compute_capability = 0;
    std::map<std::string, ptx::CompiledKernel> kernels;
    ptx::EmbeddedCode embedded;
  };
  struct Binary {
    const void* wrapper = nullptr;
    bool is_open = false;
    std::vector<Text> texts;
    std::vector<Code> code;
    std::vector<ManagedVariable> managed;
  };
  struct Symbol {
    Binary* binary = nullptr;
    const char* name = nullptr;
    std::size_t bytes = 0;
  };
  struct Registered {
    Binary* binary = nullptr;
    const char* name = nullptr;
    std::map<int, LoadedKernel> loaded;  // by the compute capability of the device
  };

  const Registered& registered(const void* host) const;
  static void open(Binary& binary);
  using Holds = std::function<bool(const ptx::Module&)>;
  /// The best for such devices of those for which `holds`: separate compilation leaves several. Null without one.
  static Text* text_for(Binary& binary, int compute_capability, const Holds& holds);
  /// "8.0, 9.0": of its PTX, for people.
  static std::string capabilities_of(const Binary& binary);
  /// Null if there is none.
  static const Code* code_for(const Binary& binary, int compute_capability);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Binary>> binaries_;
  std::map<const void*, Registered> kernels_;
  std::map<const void*, Symbol> variables_;
};

/// That of this process: registered before main, and used until its end.
KernelTable& kernel_table();

}  // namespace gradring::simulated_gpu
