// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/follower.h"

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "kernels/runtime/error.h"
#include "train/launch/exit_code.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/message.h"
#include "train/launch/signal_name.h"

namespace gradring::train {

using nlohmann::json;

Follower::Follower(const LaunchOptions& options, NodeLink link, WorkerGroup& local, Say say)
    : options_(options), link_(std::move(link)), local_(local), say_(std::move(say)) {
  if (local_.address().empty()) local_.set_address(link_.own_address());
  link_.send(join_message(offer_of(options)));
}

int Follower::to_the_end() {
  while (!code_) {
    report(local_.wait(Deadline::after(NodeLink::kBetweenBeats), {link_.fd(), mirror_ ? mirror_->fd() : -1}));
    for (const json& message : link_.receive()) try {
        obey(message);
      } catch (const json::exception& error) {
        link_.close(error.what());
      }
    link_.beat();
    if (!link_.open() && !code_) return without_leader();
  }
  if (*code_ != 0) say_(fmt::format("the run ended with code {}; node 0 says why", *code_));
  return *code_;
}

void Follower::report(const WorkerEvents& events) {
  if (mirror_)
    for (const auto& [name, value] : mirror_->changes()) link_.send(key_message(name, value));
  for (const WorkerExit& exit : events.exits) {
    json message = exit_message(exit);
    message["host"] = offer_of(options_).host;
    message["step"] = local_.furthest_step().value_or(-1);
    link_.send(message);
  }
  if (events.signal == SIGTSTP) {
    link_.pause();
    return local_.suspend();
  }
  if (events.signal == 0) return;
  // A run that goes on with fewer nodes is not ended by whoever wants this one back.
  const bool leaves = options_.ends_run(events.signal) && exit_code_after(events.signal) == kPreempted &&
                      options_.nnodes.least < options_.nnodes.most;
  link_.send(leaves ? leave_message() : signal_message(events.signal));
}

void Follower::obey(const json& message) {
  const std::string say = message.at("say");
  if (say == "refuse") throw InvalidArgument(message.at("why").get<std::string>());
  if (say == "finish") code_ = message.at("code").get<int>();
  if (say == "signal") local_.send(message.at("number"));
  if (say == "key" && mirror_) mirror_->put(message.at("name"), key_in(message));
  if (say == "start") {
    const int attempt = message.at("attempt");
    local_.prepare(attempt);
    mirror_.emplace(local_.store());
    local_.set_place(place_in(message));
    local_.start(attempt);
  }
}

int Follower::without_leader() {
  say_(fmt::format("node 0 is gone ({}): stopping the workers here", link_.reason()));
  local_.send(SIGTERM);
  local_.send(SIGCONT);
  const auto deadline = Deadline::after(options_.kill_grace);
  while (local_.running() && !deadline.passed()) {
    const int signal = local_.wait(deadline).signal;
    if (signal == SIGINT || signal == SIGQUIT) break;
  }
  return kPeerLost;  // whoever still runs is killed with the group
}

}  // namespace gradring::train
