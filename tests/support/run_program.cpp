// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace gradring::tests {
namespace {

constexpr std::chrono::milliseconds kNap(2);
constexpr std::string_view kNotInherited[] = {"GRADRING_",     "RANK=",   "WORLD_SIZE=", "LOCAL_",
                                              "GROUP_",        "ROLE_",   "MASTER_",     "PET_",
                                              "TORCHELASTIC_", "TMPDIR=", "PWD=",        "XDG_RUNTIME_DIR="};

bool inherited(std::string_view entry, const ProgramSpec& spec) {
  for (std::string_view prefix : kNotInherited)
    if (entry.starts_with(prefix)) return false;
  return std::ranges::none_of(spec.variables, [&](const auto& set) { return entry.starts_with(set.first + "="); });
}

std::vector<std::string> environment_of(const ProgramSpec& spec) {
  std::vector<std::string> entries = {"TMPDIR=" + spec.folder.string()};
  for (char** entry = ::environ; *entry != nullptr; ++entry)
    if (inherited(*entry, spec)) entries.emplace_back(*entry);
  for (const auto& [name, value] : spec.variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string text_of(std::FILE* file) {
  std::string text(static_cast<std::size_t>(::lseek(::fileno(file), 0, SEEK_END)), '\0');
  const ssize_t length = ::pread(::fileno(file), text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

}  // namespace

RunningProgram::RunningProgram(const ProgramSpec& spec) : out_(std::tmpfile()), err_(std::tmpfile()) {
  if (!out_ || !err_) throw std::runtime_error("no temporary file");
  std::vector<std::string> command = spec.command;
  std::vector<std::string> environment = environment_of(spec);
  const std::vector<char*> argv = pointers(command);
  const std::vector<char*> envp = pointers(environment);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  // The child: only what may be called between fork and exec.
  const bool ready = ::chdir(spec.folder.c_str()) == 0 && ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO) >= 0 &&
                     ::dup2(::fileno(out_), STDOUT_FILENO) >= 0 && ::dup2(::fileno(err_), STDERR_FILENO) >= 0;
  if (ready) ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

RunningProgram::~RunningProgram() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::fclose(out_);
  std::fclose(err_);
}

ProgramEnd RunningProgram::wait(std::chrono::seconds patience) {
  const auto last = std::chrono::steady_clock::now() + patience;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > last) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(kNap);
  }
  pid_ = -1;
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), text_of(out_), text_of(err_)};
}

ProgramEnd run_program(const ProgramSpec& spec) { return RunningProgram(spec).wait(); }

}  // namespace gradring::tests
