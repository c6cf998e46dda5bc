// SPDX-License-Identifier: Apache-2.0
// `gradring cuda run`: executes a program in an environment in which its CUDA calls reach simulated GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "kernels/base/file.h"
#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/findings/suppressions.h"
#include "kernels/simulated_gpu/run_options.h"
#include "train/app/cuda/cuda_commands.h"
#include "train/app/cuda/cuda_program.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"
#include "train/options/program.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using simulated_gpu::RunOptions;

constexpr std::string_view kRuntime = "libcudart.so.";
constexpr const char* kFlags = "-cudart shared -lineinfo";

std::string parse_gpu(std::string_view option, std::string_view text) try {
  const std::string card(text);
  simulated_gpu::card_of(card);
  return simulated_gpu::is_card_file(card) ? fs::absolute(card).string() : card;
} catch (const InvalidArgument&) {
  if (simulated_gpu::is_card_file(text)) throw;
  throw bad_value(option, text, fmt::format("must be {}, or a file that ends in .card", simulated_gpu::card_names()));
}

std::string parse_regex(std::string_view option, std::string_view text) try {
  std::regex(std::string(text));
  return std::string(text);
} catch (const std::regex_error& error) {
  throw bad_value(option, text, fmt::format("is not a valid ECMAScript regular expression: {}", error.what()));
}

std::string parse_file(std::string_view option, std::string_view text) {
  std::error_code ignored;
  if (!fs::is_regular_file(text, ignored)) throw bad_value(option, text, "there is no such file");
  return fs::absolute(text).string();
}

std::string parse_suppressions(std::string_view option, std::string_view text) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  std::string path = parse_file(option, text);
  try {
    simulated_gpu::suppressions_from(read_small_file(path, kMostBytes));
  } catch (const Error& error) {  // of the file, or of a line
    throw bad_value(option, text, error.what());
  }
  return path;
}

double parse_seconds(std::string_view option, std::string_view text) {
  return std::chrono::duration<double>(parse_duration(option, text)).count();
}

template <class Integer>
Option integer_option(std::string_view names, std::string help, IntegerRange range, Integer& value) {
  const auto parse = [range](std::string_view name, std::string_view text) { return parse_integer(name, text, range); };
  return value_option(names, "N", std::move(help), parse, value);
}

struct CudaRunOptions : RunOptions {};

CommandLine command_line(CudaRunOptions& options) {
  return {
      .command = "gradring cuda run",
      .purpose = "a CUDA program on simulated GPUs, its accesses checked, without a GPU",
      .usage = {"gradring cuda run [OPTIONS] [--] PROGRAM [ARGUMENTS]"},
      .options = {value_option("gpu", "NAME|FILE.card",
                               fmt::format("card that is simulated: {}, or a file that describes one (default h100)",
                                           simulated_gpu::card_names()),
                               parse_gpu, options.gpu),
                  integer_option("gpus", "number of GPUs that the program sees (default 1)", {.least = 1, .most = 64},
                                 options.gpus),
                  integer_option("threads,t", "threads of the host that execute kernels (default 1)",
                                 {.least = 1, .most = 1024}, options.threads),
                  value_option("seed", "N",
                               "seed of the orders that CUDA leaves open: of warps, blocks, streams (default 0)",
                               parse_seed, options.seed),
                  switch_option("counters", "a table of what each kernel executed, at the end of the program",
                                options.counters),
                  value_option("kernel", "REGEX", "kernels to count: a part of the demangled name (default all)",
                               parse_regex, options.kernel),
                  switch_option("formal", "findings that break the memory model, though no known GPU shows them",
                                options.formal),
                  value_option("suppressions", "FILE", "findings to leave out: a line for each, see docs/cuda.md",
                               parse_suppressions, options.suppressions),
                  new_file_option("json", "FILE.json",
                                  "JSON file for findings and counters, %p in its name: one for each process; an "
                                  "existing one is replaced",
                                  options.json),
                  integer_option("error-exitcode",
                                 "exit code where there are errors and the program ends with 0 (default 0)",
                                 {.least = 0, .most = 255}, options.error_exitcode),
                  value_option("time-limit", "TIME", "longest time that the program runs: 30s, 10m (default unlimited)",
                               parse_seconds, options.time_limit_s)},
      .takes_words = true,
      .ends_at_word = true,
      .notes =
          "The program must load the CUDA runtime as a shared library, which nvcc does\n"
          "with -cudart shared: compile it by gradring cuda nvcc, or set\n"
          "NVCC_APPEND_FLAGS=\"-cudart shared -lineinfo\". A script or make may be run too:\n"
          "programs that it starts get the same environment.\n\n" +
          exit_codes_text({{-1, "that of the program"},
                           {kUsage, {}},
                           {kEnvironment, "this gradring came without the library, or cannot write the JSON file"},
                           {simulated_gpu::kTimeLimitExitCode, "the time limit has passed"},
                           {kCannotExecute, {}},
                           {kNotFound, {}}})};
}

fs::path existing_program(const std::string& name) {
  const fs::path program = find_program(name);
  if (program.empty())
    throw ProgramError(fmt::format("there is no program {}: expected a path, or a name along PATH", name), kNotFound);
  std::error_code ignored;
  if (fs::is_directory(program, ignored))
    throw ProgramError(fmt::format("{} is a folder: name a program", program.string()), kCannotExecute);
  return program;
}

/// The first folder of a DT_RPATH that has a library; empty if none has it.
std::string folder_with(const std::string& library, const std::string& rpath, const fs::path& program) {
  std::error_code ignored;
  const std::string origin = fs::absolute(program).parent_path().string();
  for (std::size_t begin = 0; begin < rpath.size();) {
    const std::size_t end = std::min(rpath.find(':', begin), rpath.size());
    std::string folder = rpath.substr(begin, end - begin);
    for (const std::string_view variable : {"$ORIGIN", "${ORIGIN}"})
      if (const auto at = folder.find(variable); at != folder.npos) folder.replace(at, variable.size(), origin);
    if (fs::exists(fs::path(folder) / library, ignored)) return folder;
    begin = end + 1;
  }
  return {};
}

/// Errors    UsageError if the program's calls would not reach simulated GPUs; says what to do.
void check_runtime(const fs::path& program, const ProgramFile& file, const fs::path& folder) {
  if (file.has_static_runtime)
    throw UsageError(
        fmt::format("{0} contains the CUDA runtime (nvcc -cudart static, the default), so its calls cannot be "
                    "replaced; compile and link it with {1}: by gradring cuda nvcc, by NVCC_APPEND_FLAGS=\"{1}\" "
                    "make, or with CMake -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared",
                    program.string(), kFlags));
  const auto runtime =
      std::ranges::find_if(file.needed, [](const std::string& name) { return name.starts_with(kRuntime); });
  if (runtime == file.needed.end()) return;
  std::error_code ignored;
  if (!fs::exists(folder / *runtime, ignored))
    throw UsageError(fmt::format("{} needs {}, and simulated GPUs have libcudart.so.13: compile it with nvcc 13",
                                 program.string(), *runtime));
  if (const std::string own = folder_with(*runtime, file.rpath, program); !own.empty())
    throw UsageError(
        fmt::format("{} takes {} from {} by its DT_RPATH, which goes before LD_LIBRARY_PATH; link it with -Xlinker "
                    "--enable-new-dtags, or remove it: patchelf --remove-rpath",
                    program.string(), *runtime, own));
}

/// A warning for each of NVIDIA's libraries, whose kernels are machine code alone.
void warn_of_libraries(const fs::path& program, const ProgramFile& file) {
  constexpr std::array<std::string_view, 12> kLibraries = {"libcublas", "libcublasLt", "libcudnn",    "libcufft",
                                                           "libcurand", "libcusolver", "libcusparse", "libnccl",
                                                           "libnpp",    "libnvjpeg",   "libnvrtc",    "libnvJitLink"};
  for (const std::string& name : file.needed)
    if (std::ranges::any_of(kLibraries, [&](std::string_view library) { return name.starts_with(library); }))
      print_to_stderr(
          fmt::format("gradring cuda: warning: {} needs {}; NVIDIA's libraries are not simulated: a call fails\n",
                      program.string(), name));
}

void set_environment(const RunOptions& options, const fs::path& folder) {
  std::string folders = folder.string();
  if (const char* before = std::getenv("LD_LIBRARY_PATH"); before != nullptr && *before != '\0')
    folders += std::string(":") + before;
  ::setenv("LD_LIBRARY_PATH", folders.c_str(), 1);
  ::setenv(simulated_gpu::kRunOptionsVariable, text_of(options).c_str(), 1);
}

int run(CudaRunOptions& options, Words words) {
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty())
    throw UsageError(
        "expected a program: gradring cuda run [OPTIONS] -- PROGRAM [ARGUMENTS]; see gradring cuda run --help");
  if (!options.json.empty()) options.json = fs::absolute(options.json).string();
  const fs::path program = existing_program(words.front());
  const fs::path folder = cuda_library_folder();
  try {
    const ProgramFile file = read_program(program);
    check_runtime(program, file, folder);
    warn_of_libraries(program, file);
  } catch (const ReadError& error) {
    throw ProgramError(fmt::format("{} {}", program.string(), error.what()), kCannotExecute);
  }
  ProgramWatch watch;
  RunOptions of_program = options;
  of_program.json.clear();
  of_program.record = watch.record();
  set_environment(of_program, folder);
  const int code = watch.run(program, words, options.time_limit_s);
  return watch.report(options.json) && code == 0 ? options.error_exitcode.value_or(0) : code;
}

}  // namespace

constexpr const Command* kCudaActions[] = {&kCudaRun, &kCudaNvcc};
const Command kCudaCommand =
    group_of("cuda", "CUDA programs on simulated GPUs: run, nvcc", kCudaActions, "ACTION [OPTIONS] [--] PROGRAM");
const Command kCudaRun =
    make_command<CudaRunOptions>("run", "a CUDA program on simulated GPUs, with checks and counters");

}  // namespace gradring::train
