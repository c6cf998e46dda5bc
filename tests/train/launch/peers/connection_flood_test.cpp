// SPDX-License-Identifier: Apache-2.0
// A flood of unauthenticated connections at the agents' port while a training runs over two nodes.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"
#include "kernels/simt/engine/sanitizer.h"
#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/support/text_of.h"
#include "train/launch/nodes/token.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

using comm::tcp::Digest;
using comm::tcp::Handshake;
using comm::tcp::Hello;
using nlohmann::json;
using tests::RunningProgram;
using tests::Words;
using tests::Workplace;

const Workplace::Variables kFloodToken = {{"GRADRING_TOKEN", "token of this test"}};
constexpr std::int64_t kMostGrowthKb = (simt::detail::kAddressSanitizer ? 128 : 16) * 1024;  // ASan keeps freed memory

constexpr int kPatienceMs = 5000;

bool wait_for(int fd, short what) {
  pollfd ready = {fd, what, 0};
  return ::poll(&ready, 1, kPatienceMs) > 0;
}

/// Whether all was sent.
bool send_all(const UniqueFd& socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    if (count <= 0 && (errno != EAGAIN || !wait_for(socket.get(), POLLOUT))) return false;
  }
  return true;
}

/// Receives `bytes` bytes, or fewer if the other side closes.
std::string receive(const UniqueFd& socket, std::size_t bytes) {
  std::string received;
  while (received.size() < bytes && wait_for(socket.get(), POLLIN)) {
    char buffer[256];
    const ssize_t count = ::recv(socket.get(), buffer, std::min(sizeof buffer, bytes - received.size()), 0);
    if (count <= 0) break;
    received.append(buffer, static_cast<std::size_t>(count));
  }
  return received;
}

/// A length field of 4 GB, and data.
std::string four_gigabytes() { return std::string(8, '\xff') + std::string(120, 'x'); }

/// Connections to the agents' port that cannot authenticate: port scanners, other protocols, wrong tokens, replays.
class Intruders {
 public:
  /// `member` is admitted by the run: its handshake is recorded once, and replayed.
  Intruders(int port, const comm::tcp::Identity& member);

  /// One more connection, of each kind in turn. Returns false if it was admitted.
  bool connect_next();

 private:
  static constexpr std::size_t kMaxSilent = 200;  // at a time

  UniqueFd connect() const;
  void record();
  bool send_and_close(const std::string& bytes) const;
  bool send_and_wait(const std::string& bytes);
  void drip();
  bool try_token() const;
  bool replay() const;

  comm::tcp::SocketAddress address_;
  const comm::tcp::Identity& member_;
  comm::tcp::Identity other_;
  std::string hello_, proof_;     // of a member
  std::deque<UniqueFd> waiting_;  // silent and slow ones
  int count_ = 0;
};

Intruders::Intruders(int port, const comm::tcp::Identity& member)
    : address_("127.0.0.1", static_cast<std::uint16_t>(port)), member_(member), other_(member) {
  other_.token = comm::tcp::RunToken::draw();
  record();
}

UniqueFd Intruders::connect() const {
  UniqueFd socket = comm::tcp::begin_connect(address_);
  wait_for(socket.get(), POLLOUT);
  return socket;
}

/// Records a member's handshake by forwarding it through this process.
void Intruders::record() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no socket pair");
  const UniqueFd wire(ends[1]);
  Handshake member = Handshake::dial(UniqueFd(ends[0]), member_, 0, Deadline::after(std::chrono::seconds(5)));
  const UniqueFd socket = connect();
  member.advance();
  hello_ = receive(wire, sizeof(Hello));
  send_all(socket, hello_);
  send_all(wire, receive(socket, sizeof(Hello)));
  member.advance();
  proof_ = receive(wire, sizeof(Digest));
  send_all(socket, proof_);
  send_all(wire, receive(socket, sizeof(Digest)));
  if (member.advance() != Handshake::State::proven) throw std::runtime_error("a member was not admitted");
}

bool Intruders::send_and_close(const std::string& bytes) const {
  send_all(connect(), bytes);
  return true;
}

bool Intruders::send_and_wait(const std::string& bytes) {
  waiting_.push_back(connect());
  send_all(waiting_.back(), bytes);
  if (waiting_.size() > kMaxSilent) waiting_.pop_front();
  return true;
}

/// Sends one more byte of a handshake on each waiting connection.
void Intruders::drip() {
  for (const UniqueFd& socket : waiting_) ::send(socket.get(), hello_.data() + 8, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Intruders::try_token() const {
  Handshake handshake = Handshake::dial(connect(), other_, 0, Deadline::after(std::chrono::milliseconds(kPatienceMs)));
  auto state = handshake.advance();
  while (state == Handshake::State::going) {
    wait_for(handshake.fd(), handshake.interest());
    state = handshake.advance();
  }
  return state != Handshake::State::proven;
}

bool Intruders::replay() const {
  const UniqueFd socket = connect();
  send_all(socket, hello_);
  if (receive(socket, sizeof(Hello)).size() < sizeof(Hello)) return true;
  send_all(socket, proof_);
  send_all(socket, "{\"say\": \"join\"}\n");
  const std::string answer = receive(socket, sizeof(Digest));
  return answer.find_first_not_of('\0') == std::string::npos && receive(socket, 1).empty() &&
         ::send(socket.get(), "\n", 1, MSG_NOSIGNAL) <= 0;
}

bool Intruders::connect_next() {
  constexpr int kDripInterval = 64;
  if (++count_ % kDripInterval == 0) drip();
  switch (count_ % 7) {
    case 0: return send_and_close("GET / HTTP/1.1\r\n\r\n");
    case 1: return send_and_close(std::string(4096, '\xff'));
    case 2: return send_and_close(hello_ + four_gigabytes());
    case 3: return send_and_wait("");
    case 4: return send_and_wait(hello_.substr(0, 8));
    case 5: return try_token();
    default: return replay();
  }
}

/// Trains until it is stopped.
Words agent(int node, int port) {
  Words words = {"launch",
                 "--nnodes=2",
                 fmt::format("--node-rank={}", node),
                 fmt::format("--master-port={}", port),
                 "--master-addr=127.0.0.1",
                 "--rdzv-id=flood"};
  const Words training = tests::short_training({"--threads", "1", "--steps", "1000000", "--epochs", "1000000"});
  words.insert(words.end(), training.begin(), training.end());
  return words;
}

/// The peak memory of a process, in KiB.
std::int64_t peak_of(pid_t pid) {
  const std::string status = tests::text_of(fmt::format("/proc/{}/status", pid));
  const auto at = status.find("VmHWM:");
  return at == std::string::npos ? -1 : std::stoll(status.substr(at + 6));
}

/// The processor time of a process, in milliseconds.
long processor_ms_of(pid_t pid) {
  std::istringstream words(tests::text_of(fmt::format("/proc/{}/stat", pid)));
  std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
  return (std::stol(word.at(13)) + std::stol(word.at(14))) * 1000 / ::sysconf(_SC_CLK_TCK);
}

/// Real connections come from other machines: the senders must not slow the training down.
void lower_priority() {
  const sched_param no_priority{};
  EXPECT_EQ(::sched_setscheduler(0, SCHED_IDLE, &no_priority), 0);
}

/// The environment variable CONNECTIONS, for measurements.
int connections_to_make() {
  const char* given = std::getenv("CONNECTIONS");
  return given == nullptr ? 2'000 : std::max(1, std::atoi(given));
}

/// The step times of a run, from its metrics.
std::vector<double> step_times(const Workplace& place) {
  std::vector<double> times;
  for (const std::string& line : tests::records_of(place.path("run/metrics.jsonl"))) {
    const json record = tests::try_parse_json(line);
    if (record.is_object() && record.value("event", "") == "train")
      times.push_back(8.0 * 2 / record.at("samples_per_second").get<double>());
  }
  return times;
}

std::vector<double> losses(const Workplace& place, std::size_t most) {
  std::vector<double> losses;
  for (const std::string& line : tests::records_of(place.path("run/metrics.jsonl")))
    if (const json record = tests::try_parse_json(line); record.is_object() && losses.size() < most)
      losses.push_back(record.at("loss"));
  return losses;
}

double median_of(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values.at(values.size() / 2);
}

TEST(OnOneNode, TrainingOpensNoTcpSocket) {
  const Workplace place;
  Words words = tests::short_training({"--threads", "1", "--steps", "1000000", "--epochs", "1000000"});
  words.insert(words.begin(), {"launch", "--nproc-per-node=2"});
  RunningProgram launcher(place.gradring(words));
  ASSERT_TRUE(train::eventually([&] { return step_times(place).size() > 5; }));
  const auto processes = train::children_of(launcher.pid());
  EXPECT_EQ(processes.size(), 3u) << "two workers and the reaper";
  EXPECT_EQ(train::tcp_sockets_of(launcher.pid()), 0);
  for (const pid_t pid : processes) EXPECT_EQ(train::tcp_sockets_of(pid), 0) << train::process_name(pid);
  ::kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait().code, 143);
}

/// A training over two agents of this machine, in alternating blocks of steps with and without intruders, so that other
/// load affects both alike.
class UnauthenticatedConnections : public ::testing::Test {
 protected:
  static constexpr int kSenders = 4, kInABlock = 400;
  static constexpr std::chrono::milliseconds kQuietTime{500};
  static constexpr std::chrono::seconds kPatience{400};  // of a busy machine: the training takes as long as the flood
  /// First step, and the one behind the last.
  using Block = std::pair<std::size_t, std::size_t>;

  std::size_t steps() const { return step_times(first_).size(); }
  /// Sleeps, because reading the metrics would slow the training down.
  void run_quiet_block() {
    const std::size_t before = steps();
    std::this_thread::sleep_for(kQuietTime);
    quiet_.push_back({before, steps()});
  }
  /// Connects as fast as the agent answers.
  void run_busy_block(std::deque<Intruders>& senders) {
    const std::size_t before = steps();
    std::vector<std::jthread> threads;
    for (Intruders& sender : senders)
      threads.emplace_back([&] {
        lower_priority();
        for (int i = 0; i < kInABlock / kSenders; ++i) admitted_ += !sender.connect_next();
      });
    threads.clear();
    busy_.push_back({before, steps()});
  }
  double median_ms(const std::vector<Block>& blocks) const {
    const std::vector<double> all = step_times(first_);
    std::vector<double> times;
    for (const auto& [begin, end] : blocks)
      for (std::size_t i = begin; i < end; ++i) times.push_back(all.at(i));
    return 1e3 * median_of(times);
  }

  Workplace first_, second_;
  int port_ = train::free_tcp_port();
  RunningProgram leading_{first_.gradring(agent(0, port_), kFloodToken)};
  RunningProgram following_{second_.gradring(agent(1, port_), kFloodToken)};
  std::atomic<int> admitted_ = 0;
  std::vector<Block> quiet_, busy_;
};

TEST_F(UnauthenticatedConnections, ChangeNeitherTheTrainingNorTheAgent) {
  ASSERT_TRUE(train::eventually([&] { return steps() > 80; }));  // the first ones are slow
  const std::int64_t peak = peak_of(leading_.pid());
  const long processor = processor_ms_of(leading_.pid());
  train::LaunchOptions options;
  options.run_id = "flood";
  options.token = kFloodToken.front().second;
  const auto member = identity_of(options, train::AgentRole::follower);
  std::deque<Intruders> senders;
  for (int i = 0; i < kSenders; ++i) senders.emplace_back(port_, member);
  int connections = 0;
  for (const int all = connections_to_make(); connections < all && !HasFatalFailure(); connections += kInABlock) {
    run_quiet_block();
    run_busy_block(senders);
  }
  const std::int64_t growth = peak_of(leading_.pid()) - peak;
  const long agent_ms = processor_ms_of(leading_.pid()) - processor;
  EXPECT_EQ(admitted_, 0);
  EXPECT_LE(growth, kMostGrowthKb);
  ::kill(leading_.pid(), SIGTERM);
  EXPECT_EQ(leading_.wait().code, 143);
  EXPECT_EQ(following_.wait().code, 143);

  const Workplace alone;
  const std::size_t made = steps();
  Words whole = tests::short_training({"--threads", "1", "--epochs", "1000000", "--steps", std::to_string(made)});
  whole.insert(whole.begin(), {"launch", "--nproc-per-node=2"});
  RunningProgram undisturbed(alone.gradring(whole));
  ASSERT_EQ(undisturbed.wait(kPatience).code, 0);
  EXPECT_EQ(losses(first_, made), losses(alone, made)) << "bit-identical losses of all steps and tests";
  fmt::print(
      "{} connections: median step {:.3f} ms, {:.3f} ms without them; the agent took {} KiB, and {} ms of a "
      "processor\n",
      connections, median_ms(busy_), median_ms(quiet_), growth, agent_ms);
}

}  // namespace
}  // namespace gradring
