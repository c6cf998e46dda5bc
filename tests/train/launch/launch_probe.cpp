// SPDX-License-Identifier: Apache-2.0
// A stand-in for `gradring`: `launch_probe launch ...` is the launcher, `launch_probe train commands...` a worker that
// performs its commands in order, and `launch_probe spawn N commands...` calls spawn_ranks(). `launch_probe deny CALL
// ERROR ...` does one of these where that system call fails, and returns 77 if that cannot be arranged.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/sockets/socket_address.h"
#include "tests/support/deny_system_call.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/worker_environment.h"
#include "train/launch/workers/worker_files.h"
#include "train/options/error_report.h"

namespace {

using namespace gradring::train;

constexpr auto kForever = std::chrono::minutes(5);  // until a failed test kills it

/// "1:exit=7" is for rank 1 only.
bool is_for_another_rank(std::string& word, int rank) {
  const auto colon = word.find_first_not_of("0123456789");
  if (colon == 0 || colon == std::string::npos || word[colon] != ':') return false;
  const int meant = std::stoi(word.substr(0, colon));
  word.erase(0, colon + 1);
  return meant != rank;
}

/// "@1:exit=7" is for the second attempt only.
bool is_for_another_attempt(std::string& word, int attempt) {
  if (!word.starts_with('@')) return false;
  const auto colon = word.find(':');
  const int meant = std::stoi(word.substr(1, colon));
  word.erase(0, colon + 1);
  return meant != attempt;
}

/// Writes the pid to the file `name`.<rank>, to tell the test that the worker is here.
void mark(const std::string& name, int rank) {
  const std::string path = fmt::format("{}.{}", name, rank);
  std::ofstream(path + ".new") << ::getpid() << std::flush;
  ::rename((path + ".new").c_str(), path.c_str());
}

/// Writes the environment to `name`.<rank>, a line per variable.
void dump(const std::string& name, int rank) {
  std::ofstream file(fmt::format("{}.{}", name, rank));
  for (char** entry = environ; *entry != nullptr; ++entry) file << *entry << '\n';
}

/// Resets the handlers that sanitizers install for some signals.
void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Listens at MASTER_PORT, as a program's rank 0 does, until this process ends.
void listen_at_master_port(const WorkerEnvironment& place) {
  const auto listener = gradring::comm::tcp::listen_at({"127.0.0.1", static_cast<std::uint16_t>(place.master_port)}, 1);
  static_cast<void>(::dup(listener.get()));
}

/// Writes the ranks' token of this attempt to `name`.<rank>.
void copy_token(const std::string& name, const WorkerEnvironment& place) {
  std::ofstream(fmt::format("{}.{}", name, place.rank)) << read_rank_token(place.store_path);
}

void perform(const std::string& verb, const std::string& object, const WorkerEnvironment& place) {
  if (verb == "exit") std::_Exit(std::stoi(object));
  if (verb == "raise") die_of(std::stoi(object));
  if (verb == "ignore") ::signal(std::stoi(object), SIG_IGN);
  if (verb == "pause") std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(object)));
  if (verb == "mark") mark(object, place.rank);
  if (verb == "dump") dump(object, place.rank);
  if (verb == "token") copy_token(object, place);
  if (verb == "listen") listen_at_master_port(place);
  if (verb == "progress") write_progress(place.progress_file, std::stoll(object));
  if (verb == "say") fmt::print(stdout, "{}\n", object), std::fflush(stdout);
  if (verb == "say-part") fmt::print(stdout, "{}", object), std::fflush(stdout);
  if (verb == "complain") fmt::print(stderr, "{}\n", object);
  if (verb == "report") write_error_file(place.error_file, object);
  if (verb == "sleep") std::this_thread::sleep_for(kForever);
  if (verb == "await")
    while (::access(object.c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (verb == "exit-on") ::signal(std::stoi(object), [](int) { std::_Exit(33); });
  if ((verb == "child" || verb == "session") && ::fork() == 0) {  // such as a data loader
    if (verb == "session") ::setsid();
    mark(object, place.rank);
    std::this_thread::sleep_for(kForever);
    std::_Exit(0);
  }
}

int work(std::span<const std::string> words) {
  const auto place = WorkerEnvironment::from_environment(system_variable);
  for (std::string word : words) {
    if (is_for_another_attempt(word, place.restart_count) || is_for_another_rank(word, place.rank)) continue;
    const auto sign = word.find('=');
    perform(word.substr(0, sign), sign == std::string::npos ? "" : word.substr(sign + 1), place);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() > 3 && args[0] == "deny") {
    if (!gradring::tests::deny_system_call(static_cast<unsigned>(std::stoi(args[1])), std::stoi(args[2]))) return 77;
    args.erase(args.begin(), args.begin() + 3);
  }
  if (!args.empty() && args[0] == "launch") return launch_main(std::span(args).subspan(1));
  if (!args.empty() && args[0] == "train") return work(std::span(args).subspan(1));
  if (args.size() >= 2 && args[0] == "spawn") {
    std::vector<std::string> words = {"train"};
    words.insert(words.end(), args.begin() + 2, args.end());
    return spawn_ranks(std::stoi(args[1]), words);
  }
  return 64;
}
