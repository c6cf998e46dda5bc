// SPDX-License-Identifier: Apache-2.0
#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/file.h"
#include "kernels/runtime/cpu_level.h"
#include "train/app/program/openmp_wait.h"
#include "train/app/program/program.h"
#include "train/launch/workers/signals.h"
#include "train/options/exit_code.h"

namespace {

/// Opens /dev/null as each of stdin, stdout and stderr that is closed. Otherwise the next file or shared memory that is
/// opened would get its number, and receive what is printed.
void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1)
      ::open("/dev/null", O_RDONLY);  // takes the lowest free number; writes fail with EBADF
}

/// Lets writes beyond the file size limit (ulimit -f) fail with EFBIG instead of ending the process. A handler,
/// because exec resets it: programs that the launcher starts would inherit SIG_IGN.
void survive_file_size_limit() {
  if (!gradring::train::is_ignored(SIGXFSZ)) ::signal(SIGXFSZ, [](int) {});
}

/// Lets glibc load its unwinder while there is memory. It aborts if it cannot do so when a thread of OpenMP exits.
void load_unwinder() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
}

/// The launcher computes nothing, and starts sooner as it is.
bool is_launcher(const std::vector<std::string>& args, const std::string& program) {
  return program == "gradrun" || (!args.empty() && args.front() == "launch");
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_streams();
  survive_file_size_limit();
  load_unwinder();
  try {
    const std::vector<std::string> args(argv + 1, argv + argc);
    const std::string program = std::filesystem::path(argv[0]).filename().string();
    if (!is_launcher(args, program)) gradring::train::wait_passively_in_openmp(argv);
    gradring::kernels::cpu_level();  // fails before any code of a level runs
    return gradring::train::finish_standard_output(gradring::train::run_program(args, program));
  } catch (const std::exception& error) {
    if (gradring::train::is_output_failure(error))
      return gradring::train::finish_standard_output(gradring::kOk, &error);
    gradring::print_to_stderr(fmt::format("gradring: {}\n", gradring::train::message_of(error)));
    return gradring::train::exit_code_of(error);
  }
}
