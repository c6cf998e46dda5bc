// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "comm/rendezvous/file_store.h"
#include "comm/transport/error.h"
#include "tests/comm/support/ranks.h"

namespace gradring::tests {
namespace {

constexpr int kTimeoutMilliseconds = 60'000;

/// "kind\npeer\nmessage", as the parent reads it.
std::string report_of(const std::function<void()>& body) {
  const auto of = [](const char* kind, const comm::CommError& error) {
    return fmt::format("{}\n{}\n{}", kind, error.peer(), error.what());
  };
  try {
    body();
    return "ok\n-1\n";
  } catch (const comm::PeerLost& error) {
    return of("PeerLost", error);
  } catch (const comm::Timeout& error) {
    return of("Timeout", error);
  } catch (const comm::Desync& error) {
    return of("Desync", error);
  } catch (const std::exception& error) {
    return fmt::format("Error\n-1\n{}", error.what());
  }
}

[[noreturn]] void be_rank(int pipe, const std::function<void()>& body) {
  const std::string report = report_of(body);
  const bool written = ::write(pipe, report.data(), report.size()) == static_cast<ssize_t>(report.size());
  ::_exit(written ? 0 : 1);
}

std::string read_all(int pipe) {
  std::string text;
  pollfd readable{.fd = pipe, .events = POLLIN, .revents = 0};
  char buffer[4096];
  while (::poll(&readable, 1, kTimeoutMilliseconds) > 0) {
    const ssize_t count = ::read(pipe, buffer, sizeof buffer);
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return "hang\n-1\nthe process neither ended nor reported";
}

}  // namespace

Processes::Processes(int world, const Body& body) {
  store_ = std::make_unique<comm::FileStore>(folder_.path());
  for (int rank = 0; rank < world; ++rank) {
    int ends[2];
    require(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    std::fflush(nullptr);  // or the child prints buffered output again
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      for (const int other : pipes_) ::close(other);
      be_rank(ends[1], [&] { body(rank, *store_); });
    }
    ::close(ends[1]);
    pids_.push_back(pid);
    pipes_.push_back(ends[0]);
  }
}

Processes::~Processes() {
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  for (const int pipe : pipes_) ::close(pipe);
}

Outcome Processes::outcome(int rank) {
  const std::string text = read_all(pipes_[static_cast<std::size_t>(rank)]);
  if (text.empty()) return {.kind = "signal", .message = ""};
  const std::size_t first = text.find('\n');
  const std::size_t second = text.find('\n', first + 1);
  return {.kind = text.substr(0, first),
          .message = text.substr(second + 1),
          .peer = std::atoi(text.substr(first + 1, second - first - 1).c_str())};
}

void run_as_processes(int world, const std::function<void(comm::ProcessGroup&)>& body, TransportKind medium) {
  Processes processes(
      world, [&](int rank, comm::Store& store) { body(*join(medium, store, {.rank = rank, .world_size = world})); });
  for (int rank = 0; rank < world; ++rank) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "ok") << "rank " << rank << " of " << world << ": " << outcome.message;
  }
}

void require(bool condition, const char* message) {
  if (!condition) throw std::runtime_error(message);
}

}  // namespace gradring::tests
