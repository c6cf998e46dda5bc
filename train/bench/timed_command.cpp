// SPDX-License-Identifier: Apache-2.0
#include "train/bench/timed_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/runtime/error.h"
#include "train/report/environment_error.h"

namespace gradring::train::bench {
namespace {

/// posix_spawn's list of what to do to the child's descriptors.
class Silence {
 public:
  Silence() {
    ::posix_spawn_file_actions_init(&actions_);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::posix_spawn_file_actions_addopen(&actions_, stream, "/dev/null", O_RDWR, 0);
  }
  ~Silence() { ::posix_spawn_file_actions_destroy(&actions_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

pid_t start_silently(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const Silence silence;
  pid_t pid = -1;
  if (const int error = ::posix_spawnp(&pid, argv[0], silence.get(), nullptr, argv.data(), ::environ); error != 0)
    throw DeviceError(fmt::format("cannot start {}: {}", words.front(), std::strerror(error)));
  return pid;
}

std::chrono::duration<double> time_command(const std::vector<std::string>& words) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t pid = start_silently(words);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const auto end = std::chrono::steady_clock::now();
  if (status != 0)
    throw EnvironmentError(fmt::format("{} did not end well: run it by hand to see why", fmt::join(words, " ")));
  return end - begin;
}

}  // namespace gradring::train::bench
