// SPDX-License-Identifier: Apache-2.0
#include "tests/train/launch/process_table.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "kernels/base/deadline.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kBetweenLooks = std::chrono::milliseconds(3);

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (const std::string name = entry.path().filename(); name.find_first_not_of("0123456789") == std::string::npos)
      pids.push_back(std::stoi(name));
  return pids;
}

/// The word at `index`, counted from the state (0), of /proc/<pid>/stat; empty if the process has ended.
std::string stat_word(pid_t pid, int index) {
  const std::string text = text_of(fmt::format("/proc/{}/stat", pid));
  const auto after_name = text.rfind(')');  // a name may contain spaces
  if (after_name == std::string::npos) return "";
  std::istringstream words(text.substr(after_name + 1));
  std::string word;
  for (int i = 0; i <= index; ++i) words >> word;
  return word;
}

}  // namespace

std::string process_state(pid_t pid) { return stat_word(pid, 0); }

std::string process_name(pid_t pid) {
  const std::string text = text_of(fmt::format("/proc/{}/comm", pid));
  return text.substr(0, text.find('\n'));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : all_processes())
    if (stat_word(pid, 1) == std::to_string(parent)) children.push_back(pid);
  return children;
}

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    const std::string environment = '\0' + text_of(fmt::format("/proc/{}/environ", pid));
    if (environment.find('\0' + entry + '\0') != std::string::npos && process_state(pid) != "Z") found.push_back(pid);
  }
  return found;
}

void signal_process(pid_t pid, int number) {
  if (pid <= 1) throw std::invalid_argument(fmt::format("signal {} for process {}", number, pid));
  ::kill(pid, number);
}

int tcp_sockets_of(pid_t pid) {
  std::set<std::string> tcp_inodes;
  for (const char* name : {"tcp", "tcp6"}) {
    std::istringstream table(text_of(fmt::format("/proc/{}/net/{}", pid, name)));
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);
      std::string word;
      for (int i = 0; i < 10; ++i) words >> word;
      tcp_inodes.insert(fmt::format("socket:[{}]", word));
    }
  }
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    std::error_code gone;
    count += tcp_inodes.contains(fs::read_symlink(entry.path(), gone).string());
  }
  return count;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = Deadline::after(kPatience);
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace gradring::train
