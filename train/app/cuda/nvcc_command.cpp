// SPDX-License-Identifier: Apache-2.0
// `gradring cuda nvcc`: nvcc with the options that simulated GPUs need.
#include <fmt/format.h>
#include <glob.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "train/app/cuda/cuda_commands.h"
#include "train/app/cuda/cuda_program.h"
#include "train/options/environment_variable.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

struct NvccOptions {};

CommandLine command_line(NvccOptions&) {
  return {.command = "gradring cuda nvcc",
          .purpose = "nvcc, for programs that gradring cuda run executes",
          .usage = {"gradring cuda nvcc NVCC-ARGUMENTS"},
          .options = {},
          .takes_words = true,
          .ends_at_word = true,
          .notes =
              "Adds -cudart shared, so that the CUDA runtime can be replaced, and -lineinfo,\n"
              "so that findings name lines. Everything else is nvcc's. Where a Makefile or\n"
              "CMake calls nvcc, set a variable that nvcc 11.1 and later read instead:\n\n"
              "  NVCC_APPEND_FLAGS=\"-cudart shared -lineinfo\" make\n\n"
              "nvcc is that of CUDACXX, or the first of PATH, CUDA_HOME/bin, pip's wheels in\n"
              "VIRTUAL_ENV, and /usr/local/cuda/bin.\n"};
}

/// nvcc of pip's wheels in a virtual environment: nvidia/cu13/bin, of CUDA 12 nvidia/cuda_nvcc/bin.
fs::path nvcc_of_wheels(const std::string& environment) {
  for (const char* folder : {"cu13", "cuda_nvcc"}) {
    ::glob_t found{};
    const std::string pattern = fmt::format("{}/lib/python3*/site-packages/nvidia/{}/bin/nvcc", environment, folder);
    const bool is_there = ::glob(pattern.c_str(), 0, nullptr, &found) == 0;
    const fs::path nvcc = is_there ? found.gl_pathv[0] : "";
    ::globfree(&found);
    if (is_there) return nvcc;
  }
  return {};
}

/// Errors    ProgramError if it is not found.
fs::path find_nvcc() {
  if (const auto named = system_variable("CUDACXX"); named && !named->empty()) {
    if (const fs::path nvcc = find_program(*named); !nvcc.empty()) return nvcc;
    throw ProgramError(fmt::format("CUDACXX is {}, but there is no such program", *named), kNotFound);
  }
  if (const fs::path nvcc = find_program("nvcc"); !nvcc.empty()) return nvcc;
  const std::string home = system_variable("CUDA_HOME").value_or("");
  if (const fs::path nvcc = fs::path(home) / "bin/nvcc"; !home.empty() && fs::exists(nvcc)) return nvcc;
  const std::string environment = system_variable("VIRTUAL_ENV").value_or("");
  if (const fs::path nvcc = nvcc_of_wheels(environment); !environment.empty() && !nvcc.empty()) return nvcc;
  if (const fs::path nvcc = "/usr/local/cuda/bin/nvcc"; fs::exists(nvcc)) return nvcc;
  throw ProgramError(
      "no nvcc in CUDACXX, PATH, CUDA_HOME, VIRTUAL_ENV or /usr/local/cuda: install the CUDA toolkit, or in a virtual "
      "environment: pip install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl",
      kNotFound);
}

/// Whether the linker finds the shared runtime in the toolkit. pip's wheels have it without the name that -lcudart
/// means.
bool has_shared_runtime(const fs::path& nvcc) {
  std::error_code ignored;
  const fs::path toolkit = fs::weakly_canonical(nvcc, ignored).parent_path().parent_path();
  constexpr std::array kFolders = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
  for (const char* folder : kFolders)
    if (fs::exists(toolkit / folder / "libcudart.so", ignored)) return true;
  return false;
}

void run(NvccOptions&, Words words) {
  const fs::path nvcc = find_nvcc();
  Words command = {nvcc.string()};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"-cudart", "shared", "-lineinfo"});
  if (!has_shared_runtime(nvcc)) command.insert(command.end(), {"-L", cuda_library_folder().string()});
  execute(nvcc, command);
}

int run_nvcc(Arguments args, KeptAlive&) {
  NvccOptions options;
  // As the first argument alone: behind another one, --help and -h are nvcc's.
  if (!args.empty() && (args.front() == "--help" || args.front() == "-h")) {
    words_or_help(command_line(options), args);
    return kOk;
  }
  run(options, Words(args.begin(), args.end()));
  return kOk;
}

}  // namespace

const Command kCudaNvcc{.name = "nvcc",
                        .help = "nvcc, for programs that gradring cuda run executes",
                        .run = run_nvcc,
                        .describe = describe<NvccOptions>};

}  // namespace gradring::train
