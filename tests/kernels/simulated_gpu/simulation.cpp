// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/simulated_gpu/simulation.h"

#include <algorithm>
#include <deque>

#include "kernels/simulated_gpu/counters/summary.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

std::string text_of(const std::string& body, std::size_t parameters, const std::string& directives) {
  std::string text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry test(";
  for (std::size_t i = 0; i < parameters; ++i)
    text += (i == 0 ? "" : ", ") + std::string(".param .u64 p") + std::to_string(i);
  text += ")\n" + directives + "\n{\n.reg .b64 %p<" + std::to_string(std::max<std::size_t>(parameters, 1)) + ">;\n";
  std::string loads;
  for (std::size_t i = 0; i < parameters; ++i)
    loads += "ld.param.u64 %p" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
  return text + loads + body + "\nret;\n}\n";
}

std::string evaluation(const std::string& instructions, const std::vector<std::string>& types) {
  std::string text =
      ".reg .pred %q<5>;\n.reg .b16 %rs<5>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<5>;\n.reg .b32 %thread;\n.reg .b64 %at;\n";
  const std::string names = "dabc";
  for (std::size_t i = 0; i < types.size(); ++i) text += std::string(".reg .") + types[i] + " %" + names[i] + ";\n";
  text += "mov.u32 %thread, %tid.x;\n";
  const auto address = [&](std::size_t i) {
    const std::string bytes = types[i].ends_with("16") ? "2" : types[i].ends_with("32") ? "4" : "8";
    return "mul.wide.u32 %at, %thread, " + bytes + ";\nadd.s64 %at, %at, %p" + std::to_string(i) + ";\n";
  };
  for (std::size_t i = 1; i < types.size(); ++i)
    text += address(i) + "ld.global." + types[i] + " %" + names[i] + ", [%at];\n";
  return text + instructions + "\n" + address(0) + "st.global." + types[0] + " [%at], %d;\n";
}

}  // namespace

TestKernel::TestKernel(const std::string& body, std::size_t parameters, const std::string& directives)
    : module_(text_of(body, parameters, directives)), executable_(module_, *module_.kernel("test")) {}

Counters TestKernel::run(GlobalMemory& memory, const std::vector<std::uint64_t>& parameters, Extent grid, Extent block,
                         const ExecutionOptions& options, std::size_t dynamic_shared_bytes,
                         std::uint64_t most_resident_blocks, AccessLog* accesses) const {
  alignas(128) std::byte bytes[256];
  if (!parameters.empty()) std::memcpy(bytes, parameters.data(), parameters.size() * sizeof(std::uint64_t));
  return simulated_gpu::run(executable_,
                            {.grid = grid,
                             .block = block,
                             .dynamic_shared_bytes = dynamic_shared_bytes,
                             .parameters = {bytes, parameters.size() * sizeof(std::uint64_t)},
                             .most_resident_blocks = most_resident_blocks},
                            memory, options, accesses);
}

LaunchCounts TestKernel::count(GlobalMemory& memory, const std::vector<std::uint64_t>& parameters, Extent grid,
                               Extent block, std::string_view card,
                               const std::optional<ptx::CompiledKernel>& code) const {
  const Card& found = *find_card(card);
  const Counters counters =
      run(memory, parameters, grid, block, {.counted_multiprocessors = static_cast<unsigned>(found.multiprocessors)});
  return summary_of({.module = module_,
                     .kernel = executable_.kernel(),
                     .code = code,
                     .spec = {.grid = grid, .block = block, .parameters = {}},
                     .counters = counters,
                     .card = found},
                    "test");
}

std::size_t TestKernel::index_of(std::string_view text) const {
  const auto& code = executable_.kernel().code;
  return static_cast<std::size_t>(
      std::ranges::find_if(code, [&](const ptx::Instruction& i) { return i.text.starts_with(text); }) - code.begin());
}

std::vector<std::byte> detail::evaluate(const std::string& instructions, const std::vector<std::string>& types,
                                        std::size_t cases, std::size_t result_bytes,
                                        const std::vector<std::vector<std::byte>>& columns) {
  GlobalMemory memory;
  const DeviceArray<std::byte> results(memory, result_bytes);
  std::deque<DeviceArray<std::byte>> sources;
  std::vector<std::uint64_t> parameters = {results.address()};
  for (const std::vector<std::byte>& column : columns)
    parameters.push_back(sources.emplace_back(memory, column).address());
  TestKernel(evaluation(instructions, types), parameters.size())
      .run(memory, parameters, {}, {static_cast<unsigned>(cases)});
  return results.values();
}

std::string detail::fault_text(void (*call)(void*), void* context) {
  try {
    call(context);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace gradring::simulated_gpu
