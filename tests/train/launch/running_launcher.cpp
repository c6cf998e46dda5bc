// SPDX-License-Identifier: Apache-2.0
#include "tests/train/launch/running_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/train/launch/process_table.h"

namespace gradring::train {
namespace {

constexpr int kDidNotEnd = -1000;

[[noreturn]] void become_probe(const TestFolder& folder, std::vector<std::string> args, const std::vector<int>& ignored,
                               std::vector<std::string> variables) {
  ::setpgid(0, 0);  // SIGTSTP does not stop orphaned groups
  for (const int number : ignored) ::signal(number, SIG_IGN);
  if (::chdir(folder.path().c_str()) != 0) ::_exit(99);
  ::dup2(::open("stdout", O_WRONLY | O_CREAT | O_APPEND, 0600), STDOUT_FILENO);
  ::dup2(::open("stderr", O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  for (const char* own : {"XDG_RUNTIME_DIR", "GRADRING_TOKEN", "GRADRING_TOKEN_FILE"}) ::unsetenv(own);
  for (auto& entry : variables) ::putenv(entry.data());
  std::string probe = GRADRING_LAUNCH_PROBE;
  std::vector<char*> words = {probe.data()};
  for (auto& word : args) words.push_back(word.data());
  words.push_back(nullptr);
  ::execv(probe.c_str(), words.data());
  ::_exit(99);
}

}  // namespace

std::string TestFolder::text(const std::string& name) const {
  std::ifstream file(path() / name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void TestFolder::touch(const std::string& name) const { std::ofstream(path() / name).flush(); }

std::vector<std::string> TestFolder::run_folders() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path()))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  return names;
}

RunningLauncher::RunningLauncher(const TestFolder& folder, const std::vector<std::string>& args,
                                 const std::vector<int>& ignored, std::vector<std::string> variables)
    : folder_(folder), pid_(::fork()) {
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) become_probe(folder, args, ignored, std::move(variables));
}

RunningLauncher::~RunningLauncher() {
  if (ended_) return;
  signal_process(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void RunningLauncher::send(int signal) const { signal_process(pid_, signal); }

pid_t RunningLauncher::await_mark(const std::string& name, int rank) const {
  const std::string file = fmt::format("{}.{}", name, rank);
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(folder_.path() / file); }))
      << "no mark " << file << "; stderr: " << errors();
  const std::string text = folder_.text(file);
  return text.empty() ? -1 : std::stoi(text);
}

int RunningLauncher::wait() {
  int status = 0;
  ended_ = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
  if (!ended_) return kDidNotEnd;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace gradring::train
