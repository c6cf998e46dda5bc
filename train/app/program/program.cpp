// SPDX-License-Identifier: Apache-2.0
#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/file.h"
#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn.h"
#include "train/app/commands/commands.h"
#include "train/app/cuda/cuda_commands.h"
#include "train/bench/commands/commands.h"
#include "train/launch/launcher.h"
#include "train/launch/options/parse_launch.h"
#include "train/launch/workers/signals.h"
#include "train/options/exit_code.h"
#include "train/options/program.h"

namespace gradring::train {
namespace {

constexpr const Command* kCkptActions[] = {&kCkptLs, &kCkptVerify, &kCkptDiff, &kCkptInspect, &kCkptPrune};
constexpr const Command* kRunsActions[] = {&kRunsLs, &kRunsShow, &kRunsCompare, &kRunsRm, &kRunsExport};
constexpr const Command* kDataCacheActions[] = {&kDataCacheLs, &kDataCacheRm};
constexpr const Command* kModelActions[] = {&kModelShow};
constexpr const Command* kTraceActions[] = {&kTraceSummary};
constexpr const Command* kBenchmarks[] = {&kBenchKernels, &kBenchStep,    &kBenchCompare, &kBenchAllReduce,
                                          &kBenchLaunch,  &kBenchRestart, &kBenchLoader,  &kBenchParallel,
                                          &kBenchScaling, &kBenchSeeds,   &kBenchDiff};

constexpr Command kCkptCommand =
    group_of("ckpt", "checkpoints: list, verify, compare, inspect, prune", kCkptActions, "ACTION PATH... [OPTIONS]");
constexpr Command kRunsCommand =
    group_of("runs", "runs: list, show, compare, remove, export as CSV", kRunsActions, "ACTION RUN... [OPTIONS]");
constexpr Command kDataCacheCommand =
    group_of("cache", "decoded images of image folders: list, remove", kDataCacheActions, "ACTION [KEY...]");
constexpr const Command* kDataActions[] = {&kDataFetch, &kDataVerify, &kDataInfo, &kDataCacheCommand};
constexpr Command kDataCommand =
    group_of("data", "datasets: fetch, verify, describe, cached images", kDataActions, "ACTION [NAME] [OPTIONS]");
constexpr Command kModelCommand =
    group_of("model", "models, built in or from files: show", kModelActions, "ACTION NAME|FILE.toml [OPTIONS]");
constexpr Command kTraceCommand =
    group_of("trace", "traces of training (train --trace): summarize", kTraceActions, "ACTION FILE... [OPTIONS]");
constexpr Command kBenchCommand =
    group_of("bench", "benchmarks of kernels, collectives, training steps", kBenchmarks, "WHAT [OPTIONS]", "benchmark");
constexpr Command kLaunchCommand{.name = "launch",
                                 .help = "start and supervise the ranks of a run, like torchrun",
                                 .run = [](Arguments args, KeptAlive&) { return launch_main(args); },
                                 .describe = launch_command_line};
}  // namespace

extern const Command kProgram;

constexpr const Command* kCommands[] = {
    &kTrainCommand,  &kPlanCommand,   &kLrFindCommand,    &kEvalCommand,    &kPredictCommand,
    &kRunsCommand,   &kTopCommand,    &kReportCommand,    &kTraceCommand,   &kCkptCommand,
    &kExportCommand, &kBenchCommand,  &kDataCommand,      &kModelCommand,   &kLaunchCommand,
    &kCudaCommand,   &kDoctorCommand, &kHelpOf<kProgram>, &kVersionCommand, &kCompletionsOf<kProgram>};

constexpr Command kProgram{.name = "gradring",
                           .help = "data-parallel training on CPUs and GPUs, readable from end to end",
                           .subcommands = kCommands,
                           .usage = "COMMAND [OPTIONS]",
                           .kind = "command",
                           .notes = "gradrun is gradring launch. First try: gradring train"};

namespace {

/// Runs `gradring ARGS`, or `gradring launch ARGS` if the program is called gradrun.
///
/// Returns   the exit code.
int run_named(Arguments args, std::string_view program) {
  return program == "gradrun" ? launch_main(args) : run_program(kProgram, args);
}

/// Lets writes beyond the file size limit (ulimit -f) fail with EFBIG instead of ending the process. A handler,
/// because exec resets it: programs that the launcher starts would inherit SIG_IGN.
void survive_file_size_limit() {
  if (!is_ignored(SIGXFSZ)) ::signal(SIGXFSZ, [](int) {});
}

/// Lets glibc load its unwinder while there is memory. It aborts if it cannot do so when a thread of OpenMP exits.
void load_unwinder() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
}

/// A launcher of other programs computes nothing, and starts sooner as it is.
bool is_launcher(Arguments args, std::string_view program) {
  return program == "gradrun" || (!args.empty() && (args.front() == "launch" || args.front() == "cuda"));
}

constexpr const char* kWaitPolicy = nn::kOpenmpWaitVariables[0];
/// Set between the two executions.
constexpr const char* kWaitPolicySetByUs = "GRADRING_SET_OMP_WAIT_POLICY";

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

void remove_wait_policy() {
  ::unsetenv(kWaitPolicy);
  ::unsetenv(kWaitPolicySetByUs);
}

/// Lets OpenMP's threads, with which oneDNN computes, sleep while they wait for each other. By default those of libgomp
/// spin for 3 ms, and take the processor from the thread that they wait for where there are more threads than processors:
/// the loader's is one more. An environment that says how they wait is obeyed.
///
/// libgomp reads its variables when it is loaded, before main(). So this executes the program once more, with
/// OMP_WAIT_POLICY=passive, and removes that variable there: programs that this one starts do not inherit it. If the
/// program cannot be executed, it continues, with threads that spin.
void wait_passively_in_openmp(char** argv) {
  if (is_set(kWaitPolicySetByUs)) {
    nn::read_openmp_environment();
    return remove_wait_policy();
  }
  const bool is_loaders_argument = ::getauxval(AT_BASE) == 0;  // "ld.so gradring": /proc/self/exe is ld.so
  if (!nn::has_onednn() || is_loaders_argument || std::ranges::any_of(nn::kOpenmpWaitVariables, is_set)) return;
  ::setenv(kWaitPolicy, "passive", 1);
  ::setenv(kWaitPolicySetByUs, "1", 1);
  ::execv("/proc/self/exe", argv);
  remove_wait_policy();
}

}  // namespace
}  // namespace gradring::train

int main(int argc, char** argv) {
  using namespace gradring::train;
  reserve_standard_streams();
  survive_file_size_limit();
  load_unwinder();
  try {
    const std::vector<std::string> args(argv + 1, argv + argc);
    const std::string program = std::filesystem::path(argv[0]).filename().string();
    if (!is_launcher(args, program)) wait_passively_in_openmp(argv);
    gradring::kernels::cpu_level();  // fails before any code of a level runs
    return finish_standard_output(run_named(args, program));
  } catch (const std::exception& error) {
    if (is_output_failure(error)) return finish_standard_output(gradring::kOk, &error);
    gradring::print_to_stderr(fmt::format("gradring: {}\n", message_of(error)));
    return exit_code_of(error);
  }
}
