// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/kernel_table.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/ptx/fat_binary.h"

namespace gradring::simulated_gpu {
namespace {

using simt::demangled;

/// "sm_90a" has instructions that no later device has.
bool is_for_one_capability(const ptx::Module& module) {
  const std::string_view target = module.target();
  return !target.empty() && target.back() == 'a';
}

/// "9.0"
std::string capability_name(int compute_capability) {
  return joined(compute_capability / 10, ".", compute_capability % 10);
}

bool defines(const ptx::Module& module, std::string_view variable) {
  const auto index = module.variable_named(variable);
  return index && !module.variables()[*index].is_extern;
}

}  // namespace

KernelTable& kernel_table() {
  static auto* const table = new KernelTable;
  return *table;
}

void** KernelTable::add_binary(const void* wrapper) {
  const std::lock_guard lock(mutex_);
  binaries_.push_back(std::make_unique<Binary>());
  binaries_.back()->wrapper = wrapper;
  return reinterpret_cast<void**>(binaries_.back().get());
}

void KernelTable::add_kernel(void** binary, const void* host, const char* name) {
  const std::lock_guard lock(mutex_);
  kernels_[host] = {.binary = reinterpret_cast<Binary*>(binary), .name = name, .loaded = {}};
}

void KernelTable::add_variable(void** binary, const void* host, const char* name, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  variables_[host] = {.binary = reinterpret_cast<Binary*>(binary), .name = name, .bytes = bytes};
}

void KernelTable::add_managed_variable(void** binary, void** slot, const char* name, std::size_t bytes) {
  add_variable(binary, slot, name, bytes);
  const std::lock_guard lock(mutex_);
  reinterpret_cast<Binary*>(binary)->managed.push_back({name, slot});
}

const KernelTable::Registered& KernelTable::registered(const void* host) const {
  const auto found = kernels_.find(host);
  if (found == kernels_.end()) throw Misuse{cudaErrorInvalidDeviceFunction, "an address that is not of a kernel"};
  return found->second;
}

std::string KernelTable::name_of(const void* host) const {
  const std::lock_guard lock(mutex_);
  return demangled(registered(host).name);
}

void KernelTable::open(Binary& binary) {
  if (binary.is_open) return;
  for (ptx::EmbeddedPtx& embedded : ptx::embedded_ptx(binary.wrapper))
    binary.texts.push_back(
        {.compute_capability = embedded.compute_capability, .text = std::move(embedded.text), .module = {}});
  for (const ptx::EmbeddedCode& embedded : ptx::embedded_code(binary.wrapper))
    binary.code.push_back({embedded.compute_capability, ptx::compiled_kernels(embedded.elf), embedded});
  binary.is_open = true;
}

/// Machine code is for devices of its major capability, from its minor one on.
const KernelTable::Code* KernelTable::code_for(const Binary& binary, int compute_capability) {
  const Code* best = nullptr;
  for (const Code& code : binary.code)
    if (code.compute_capability / 10 == compute_capability / 10 && code.compute_capability <= compute_capability &&
        (best == nullptr || best->compute_capability < code.compute_capability))
      best = &code;
  return best;
}

void KernelTable::check_card(const Card& card) try {
  const std::lock_guard lock(mutex_);
  std::set<int> known;
  for (const auto& binary : binaries_) {
    open(*binary);
    for (const Text& text : binary->texts) {
      if (text.compute_capability <= card.compute_capability()) return;
      known.insert(text.compute_capability);
    }
  }
  if (known.empty()) return;  // a program without kernels
  std::string names;
  for (const int capability : known) names += (names.empty() ? "" : ", ") + capability_name(capability);
  throw InvalidArgument(joined("this program has no PTX for ", card.name, ", whose compute capability is ",
                               capability_name(card.compute_capability()), ", but for ", names, ": build it with ",
                               "CUDAARCHS='", card.compute_capability(), ";", *known.begin(),
                               "', or nvcc -gencode arch=compute_", card.compute_capability(), ",code=compute_",
                               card.compute_capability()));
} catch (const ptx::PtxError&) {  // a kernel's launch reports it
}

std::vector<std::string> KernelTable::unused() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [host, kernel] : kernels_)
    if (kernel.loaded.empty()) names.push_back(demangled(kernel.name));
  return names;
}

std::size_t KernelTable::size() const {
  const std::lock_guard lock(mutex_);
  return kernels_.size();
}

std::string KernelTable::capabilities_of(const Binary& binary) {
  std::string names;
  for (const Text& text : binary.texts) names += (names.empty() ? "" : ", ") + capability_name(text.compute_capability);
  return names.empty() ? "none" : names;
}

KernelTable::Text* KernelTable::text_for(Binary& binary, int compute_capability, const Holds& holds) {
  struct Candidate {
    int rank = 0;
    Text* text = nullptr;
  };
  std::vector<Candidate> candidates;
  for (Text& text : binary.texts) {
    if (text.compute_capability > compute_capability) continue;
    if (!text.module) text.module = std::make_unique<ptx::Module>(std::move(text.text));
    const bool is_for_one = is_for_one_capability(*text.module);
    if (is_for_one && text.compute_capability != compute_capability) continue;
    // Of compute_90 and compute_90a, the one for the device alone.
    candidates.push_back({2 * text.compute_capability + (is_for_one ? 1 : 0), &text});
  }
  std::ranges::stable_sort(candidates, std::greater(), &Candidate::rank);
  const auto found =
      std::ranges::find_if(candidates, [&](const Candidate& candidate) { return holds(*candidate.text->module); });
  return found == candidates.end() ? nullptr : found->text;
}

const LoadedKernel& KernelTable::load(const void* host, int compute_capability) try {
  const std::lock_guard lock(mutex_);
  auto& found = const_cast<Registered&>(registered(host));
  if (const auto known = found.loaded.find(compute_capability); known != found.loaded.end()) return known->second;
  open(*found.binary);
  const Text* const text = text_for(*found.binary, compute_capability,
                                    [&](const ptx::Module& module) { return module.kernel(found.name) != nullptr; });
  const ptx::Kernel* const kernel = text ? text->module->kernel(found.name) : nullptr;
  if (!kernel)
    throw Misuse{
        cudaErrorNoKernelImageForDevice,
        joined("no PTX of ", demangled(found.name), " for compute capability ", capability_name(compute_capability),
               ", the program has that of ", capabilities_of(*found.binary), ": compile it with -gencode arch=compute_",
               compute_capability, ",code=compute_", compute_capability)};
  LoadedKernel loaded{.module = *text->module,
                      .kernel = *kernel,
                      .compute_capability = text->compute_capability,
                      .executable = std::make_shared<const Executable>(*text->module, *kernel),
                      .code = {}};
  if (const Code* const code = code_for(*found.binary, compute_capability))
    if (const auto own = code->kernels.find(found.name); own != code->kernels.end()) {
      loaded.code = own->second;
      loaded.cubin = code->embedded.elf;
      // Its lines are those of the PTX that it was compiled from.
      if (code->compute_capability != text->compute_capability) loaded.code->instructions.clear();
    }
  return found.loaded.emplace(compute_capability, std::move(loaded)).first->second;
} catch (const Error& error) {  // of PTX, or an instruction that is not simulated
  throw Misuse{cudaErrorNotSupported, error.what()};
}

LoadedVariable KernelTable::load_variable(const void* host, int compute_capability) try {
  const std::lock_guard lock(mutex_);
  const auto found = variables_.find(host);
  if (found == variables_.end()) throw Misuse{cudaErrorInvalidSymbol, "an address that is not of a variable"};
  const Symbol& symbol = found->second;
  open(*symbol.binary);
  const Text* const text = text_for(*symbol.binary, compute_capability,
                                    [&](const ptx::Module& module) { return defines(module, symbol.name); });
  const auto index = text ? text->module->variable_named(symbol.name) : std::nullopt;
  if (!index)
    throw Misuse{cudaErrorInvalidSymbol, joined("no PTX with variable ", symbol.name, " for compute capability ",
                                                compute_capability / 10, ".", compute_capability % 10)};
  return {*text->module, *index, symbol.bytes};
} catch (const Error& error) {
  throw Misuse{cudaErrorNotSupported, error.what()};
}

std::vector<const ptx::Module*> KernelTable::modules_of(void** binary, int compute_capability) try {
  const std::lock_guard lock(mutex_);
  auto& own = *reinterpret_cast<Binary*>(binary);
  open(own);
  std::vector<const ptx::Module*> modules;
  for (const ManagedVariable& variable : own.managed)
    if (const Text* const text = text_for(own, compute_capability,
                                          [&](const ptx::Module& module) { return defines(module, variable.name); }))
      modules.push_back(text->module.get());
  return modules;
} catch (const Error& error) {
  throw Misuse{cudaErrorNotSupported, error.what()};
}

std::optional<LoadedVariable> KernelTable::definition(const ptx::Module& module, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& binary : binaries_) {
    const auto is_of = [&](const Text& text) { return text.module.get() == &module; };
    if (std::ranges::none_of(binary->texts, is_of)) continue;
    for (const Text& text : binary->texts)
      if (text.module && text.module->target() == module.target() && defines(*text.module, name))
        return LoadedVariable{*text.module, *text.module->variable_named(name), 0};
  }
  return std::nullopt;
}

std::vector<KernelTable::ManagedVariable> KernelTable::managed_variables(const ptx::Module& module) const {
  const std::lock_guard lock(mutex_);
  for (const auto& binary : binaries_)
    for (const Text& text : binary->texts)
      if (text.module.get() == &module) return binary->managed;
  return {};
}

}  // namespace gradring::simulated_gpu
