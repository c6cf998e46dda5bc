// SPDX-License-Identifier: Apache-2.0
// Translation of a kernel, and its launch: machine/launch.h.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/runtime/philox.h"
#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/findings.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

Operation translate(FrameLayout& frame, const ptx::Instruction& instruction) {
  Operation operation;
  operation.guard = frame.of_true();
  if (instruction.guard) {
    operation.guard = frame.of_register(instruction.guard->reg);
    operation.guard_flip = instruction.guard->negated ? kAllLanes : 0;
  }
  const Translator translator = translator_of(instruction);
  if (translator == nullptr) throw Unsupported("the instruction is not known");
  Decoder decoder(frame, instruction);
  translator(decoder, operation);
  return operation;
}

/// The handler of operations that access rows of wgmma.
void touch_and_execute(const Operation& operation, Warp& warp, Mask active) {
  Block& block = warp.block();
  block.warpgroups().touch(operation, warp, active);
  block.program().handlers[block.program().position_of(operation)](operation, warp, active);
}

void watch_warpgroup_rows(Program& program) {
  if (program.warpgroup_rows.empty()) return;
  for (Operation& operation : program.operations) {
    program.handlers.push_back(operation.execute);
    const auto is_watched = [&](Slot slot) { return program.warpgroup_rows.contains(slot); };
    const bool accesses = is_watched(operation.d) || is_watched(operation.a) || is_watched(operation.b) ||
                          is_watched(operation.c) ||
                          std::any_of(operation.slots, operation.slots + operation.slot_count, is_watched);
    if (accesses && !is_wgmma(operation)) operation.execute = &touch_and_execute;
  }
}

/// Instructions of one spelling that cannot be translated.
struct Rejected {
  std::string reason;
  std::string_view opcode;
  std::size_t first = 0;  ///< position
  std::size_t count = 0;
};

void add(std::vector<Rejected>& rejected, const std::string& reason, std::string_view opcode, std::size_t position) {
  for (Rejected& known : rejected)
    if (known.opcode == opcode && known.reason == reason) {
      ++known.count;
      return;
    }
  rejected.push_back({reason, opcode, position, 1});
}

std::string described(const Program& program, const std::vector<Rejected>& rejected) {
  std::string text;
  for (const Rejected& one : rejected)
    text += "\n   " + one.reason + ": " + describe_instruction(program, one.first) +
            (one.count == 1 ? "" : " (" + std::to_string(one.count) + " times " + std::string(one.opcode) + ")");
  return text;
}

}  // namespace

Executable::Executable(const ptx::Module& module, const ptx::Kernel& kernel) : program_(std::make_unique<Program>()) {
  Program& program = *program_;
  program.module = &module;
  program.kernel = &kernel;
  FrameLayout frame(program);
  std::vector<Rejected> rejected;
  const auto begin_code_at = [&](std::size_t position) {
    if (position == kernel.entry) frame.begin_code_of(nullptr);
    for (const ptx::Function& function : kernel.functions)
      if (function.is_defined && function.begin == position) frame.begin_code_of(&function);
  };
  for (std::size_t i = 0; i < kernel.code.size(); ++i) try {
      begin_code_at(i);
      program.operations.push_back(translate(frame, kernel.code[i]));
    } catch (const Unsupported& reason) {
      add(rejected, reason.what(), kernel.code[i].opcode, i);
    }
  if (!rejected.empty())
    throw Fault("the simulated GPU cannot execute " + kernel_label(kernel) + ":" + described(program, rejected));
  program.operations.push_back(end_of_kernel(frame));
  watch_warpgroup_rows(program);
}

Executable::~Executable() = default;

const ptx::Kernel& Executable::kernel() const { return *program_->kernel; }

std::string Executable::describe(std::size_t position) const {
  return kernel_label(kernel()) + ", " + describe_instruction(*program_, position);
}

Counters& Counters::operator+=(const Counters& other) {
  blocks += other.blocks;
  warps += other.warps;
  instructions.resize(std::max(instructions.size(), other.instructions.size()));
  for (std::size_t i = 0; i < other.instructions.size(); ++i) {
    for (const auto count : {&Instruction::executions, &Instruction::lanes, &Instruction::requests, &Instruction::bytes,
                             &Instruction::sectors, &Instruction::least_sectors, &Instruction::shared_requests,
                             &Instruction::wavefronts, &Instruction::least_wavefronts})
      instructions[i].*count += other.instructions[i].*count;
  }
  by_multiprocessor.resize(std::max(by_multiprocessor.size(), other.by_multiprocessor.size()));
  for (std::size_t i = 0; i < other.by_multiprocessor.size(); ++i) {
    std::vector<std::uint64_t>& sums = by_multiprocessor[i];
    const std::vector<std::uint64_t>& added = other.by_multiprocessor[i];
    sums.resize(std::max(sums.size(), added.size()));
    for (std::size_t k = 0; k < added.size(); ++k) sums[k] += added[k];
  }
  read_sectors.add(other.read_sectors);
  written_sectors.add(other.written_sectors);
  return *this;
}

/// A launch: host threads take blocks until none is left or one of them has found a fault.
class Grid {
 public:
  Grid(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory, const ExecutionOptions& options)
      : program_(*executable.program_),
        launch_(launch),
        memory_(memory),
        options_(options),
        blocks_(launch.grid.count()) {
    check_launch();
    draw_order();
  }

  Counters run(AccessLog* accesses) {
    {
      std::vector<std::jthread> helpers;
      const std::uint64_t threads = std::min<std::uint64_t>(std::max(options_.threads, 1u), blocks_);
      for (std::uint64_t i = 1; i < threads; ++i) helpers.emplace_back([this] { work(); });
      work();
    }
    if (error_) std::rethrow_exception(error_);
    if (options_.checks_races) check_races();
    if (accesses != nullptr) *accesses = std::move(accesses_);
    return std::move(counters_);
  }

 private:
  void check_launch() const {
    const ptx::Kernel& kernel = *program_.kernel;
    const auto refuse = [&](const std::string& why) { throw Fault("launch of " + kernel_label(kernel) + ": " + why); };
    constexpr std::uint64_t kMostThreads = 1024;
    const std::uint64_t threads = launch_.block.count();
    const std::uint64_t most =
        kernel.most_threads != 0 ? std::min<std::uint64_t>(kernel.most_threads, kMostThreads) : kMostThreads;
    if (threads == 0 || threads > most) refuse(joined("a block has ", threads, " threads; expected 1 to ", most));
    if (blocks_ == 0) refuse("the grid has no blocks");
    for (const ptx::Function& function : kernel.functions)
      if (!function.is_defined && (options_.functions == nullptr || !options_.functions->contains(function.name)))
        refuse(joined("it calls ", function_label(function), ", which is not defined in its module, nor a function of the runtime"));
    if (launch_.parameters.size() < kernel.parameter_bytes)
      refuse(joined("the parameters have ", launch_.parameters.size(), " bytes; expected ", kernel.parameter_bytes));
  }

  void check_races() {
    if (blocks_ == 1) return;
    accesses_.finish();
    if (options_.findings == nullptr) {
      if (const auto conflict = accesses_.between_blocks())
        throw LocatedFault(finding_of(*conflict));
      return;
    }
    for (const AccessLog::Conflict& conflict : accesses_.all_between_blocks()) {
      const FindingPlace place{.kind = FindingKind::block_race,
                               .kernel = program_.kernel,
                               .position = conflict.earlier.position,
                               .detail = std::to_string(conflict.later.position)};
      if (options_.findings->is_new(place)) options_.findings->add(place, finding_of(conflict));
    }
  }

  Finding finding_of(const AccessLog::Conflict& conflict) const {
    return finding_of_launch(program_, launch_.device, FindingKind::block_race, conflict.earlier.position,
                             describe_race(program_, launch_.grid, memory_, conflict));
  }

  void draw_order() {
    if (options_.seed == 0 || blocks_ == 1) return;
    const auto words = kernels::philox(options_.seed, 0, ~std::uint64_t{0});
    first_ = words[0] % blocks_;
    step_ = 1 + words[1] % (std::min<std::uint64_t>(blocks_, 1u << 31) - 1);
    while (std::gcd(step_, blocks_) != 1) ++step_;
  }

  void work() {
    try {
      Block block(program_, launch_, memory_, options_);
      for (std::uint64_t i = next_++; i < blocks_; i = next_++)
        block.run(static_cast<std::uint64_t>((first_ + static_cast<__uint128_t>(i) * step_) % blocks_));
      const std::lock_guard lock(mutex_);
      counters_ += block.counters();
      if (block.accesses() != nullptr) accesses_.append(block.accesses()->take());
    } catch (...) {
      next_ = blocks_;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  const Program& program_;
  const LaunchSpec& launch_;
  GlobalMemory& memory_;
  const ExecutionOptions& options_;
  std::uint64_t blocks_;
  std::uint64_t first_ = 0;  ///< the i-th block to be executed is first_ + i * step_, modulo their number
  std::uint64_t step_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;  ///< of the three below
  Counters counters_;
  AccessLog accesses_;
  std::exception_ptr error_;
};

Counters run(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory,
             const ExecutionOptions& options, AccessLog* accesses) {
  return Grid(executable, launch, memory, options).run(accesses);
}

}  // namespace gradring::simulated_gpu
