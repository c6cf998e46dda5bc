// SPDX-License-Identifier: Apache-2.0
// Programs that use the CUDA runtime: where they are, what they need, how they are executed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/simulated_gpu/run_options.h"
#include "train/options/commands.h"

namespace gradring::train {

/// A program that does not exist or cannot be executed, with a shell's exit code for that.
class ProgramError : public Error, public HasExitCode {
 public:
  ProgramError(const std::string& message, ExitCode code) : Error(message), code_(code) {}
  ExitCode exit_code() const noexcept override { return code_; }

 private:
  ExitCode code_;
};

/// The folder of the drop-in libcudart.so.13: cuda_program beside the program (a build folder), or below
/// ../GRADRING_MODULE_DIR (installed). Programs find it by LD_LIBRARY_PATH.
///
/// Errors    DeviceError if this gradring came without it; says what to do.
std::filesystem::path cuda_library_folder();

/// A program as a shell finds it: a path, or a name along PATH.
///
/// Returns   its path; empty if it is not found.
std::filesystem::path find_program(const std::string& name);

/// Executes a program, which replaces this one. `arguments` begin with its name.
///
/// Errors    ProgramError: it cannot be executed.
[[noreturn]] void execute(const std::filesystem::path& program, const Words& arguments);

/// Executes a program on simulated GPUs as a child of this process, which has the findings of all processes that the
/// program starts, however they end.
///
/// Threads   the process has no other thread.
/// Errors    DeviceError if the system runs out of processes or files.
class ProgramWatch {
 public:
  ProgramWatch();

  /// The path of RunOptions::record, while this process lives.
  std::string record() const;
  /// Executes the program, and kills what it started and left. Signals that this process is sent go to the program.
  ///
  /// Returns   its exit code, 128 + n for signal n; kTimeLimitExitCode if it goes on after `limit_s`.
  int run(const std::filesystem::path& program, const Words& words, std::optional<double> limit_s);
  /// Prints a summary of each process that has not printed its own, and writes the JSON file `path`: with %p, which
  /// stands for the process id, one for each process; empty: none.
  ///
  /// Returns   whether there was an error.
  /// Errors    DeviceError if a file cannot be written.
  bool report(const std::string& path) const;

 private:
  UniqueFd record_;
  pid_t program_ = -1;
};

/// What the dynamic linker and CUDA will do with a program.
struct ProgramFile {
  bool is_elf = false;              ///< of 64 bits, as this program; false for a script, with all else empty
  std::vector<std::string> needed;  ///< shared libraries that it names: "libcudart.so.13"
  std::string rpath;                ///< DT_RPATH without DT_RUNPATH: folders that go before LD_LIBRARY_PATH
  /// nvcc's runtime is part of it: device code that it registers itself, or the functions that do so.
  bool has_static_runtime = false;
};

/// Errors    ReadError if the file cannot be read, or is damaged.
/// Source    System V ABI, edition 4.1, chapter 4; sections and functions are those of nvcc 13.
ProgramFile read_program(const std::filesystem::path& file);

}  // namespace gradring::train
