// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/runtime/error.h"
#include "train/launch/exit_code.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/places_of_nodes.h"
#include "train/launch/signal_name.h"
#include "train/launch/standalone.h"

namespace gradring::train {

using nlohmann::json;

namespace {

/// The earlier one.
Deadline earlier(const std::optional<Deadline>& some, const Deadline& other) {
  return some && some->remaining() < other.remaining() ? *some : other;
}

}  // namespace

Leader::Leader(const LaunchOptions& options, Doorway doorway, WorkerGroup& local, Say say)
    : options_(options), local_(local), say_(std::move(say)), roster_(std::move(doorway), offer_of(options)) {}

void Leader::start(int attempt) {
  wait_for_nodes();
  node_lost_ = false;
  place_workers(attempt);
  local_.start(attempt);
}

/// Those who asked to go.
void Leader::let_go() {
  for (Seat& seat : roster_.seats())
    if (seat.taken() && seat.leaving) {
      seat.link->send(finish_message(kPreempted));
      seat = {};
    }
}

bool Leader::enough(const Deadline& last_call) const {
  const int present = roster_.present();
  return present == options_.nnodes.most || (present >= options_.nnodes.least && last_call.passed());
}

void Leader::wait_for_nodes() {
  const auto deadline = Deadline::after(options_.join_timeout);
  auto last_call = Deadline::after(options_.last_call);
  bool said = false;
  let_go();
  for (int before = roster_.present(); !enough(last_call);) {
    const bool few = roster_.present() < options_.nnodes.least;
    if (few && deadline.passed())
      throw DeviceError(
          fmt::format("{} did not come within {} s: start `gradring launch` there with the same address, "
                      "port and --rdzv-id",
                      roster_.missing(), std::chrono::duration<double>(options_.join_timeout).count()));
    wait_a_moment(few ? deadline : last_call);
    let_go();
    if (std::exchange(before, roster_.present()) < options_.nnodes.least)
      last_call = Deadline::after(options_.last_call);
    if (!std::exchange(said, true) && !enough(last_call)) say_(fmt::format("waiting for {}", roster_.missing()));
  }
}

/// While no worker runs: there is nobody whom a signal could be passed to.
void Leader::wait_a_moment(const Deadline& deadline) {
  const int signal = wait(deadline).signal;
  if (signal == SIGTSTP) suspend();
  if (options_.ends_run(signal)) throw StartInterrupted{signal};
}

/// Nodes that are here count, in the order of their seats.
void Leader::place_workers(int attempt) {
  std::vector<Seat*> here = {&roster_.seats()[0]};
  for (Seat& seat : roster_.seats())
    if (seat.taken()) here.push_back(&seat);
  std::vector<NodeOffer> offers;
  for (const Seat* seat : here) offers.push_back(seat->offer);
  const auto places = places_of_nodes(offers, options_.master_addr, free_tcp_port());

  world_size_ = places[0].world_size;
  furthest_step_ = furthest_step();
  local_.prepare(attempt);
  mirror_.emplace(local_.store());
  local_.set_place(places[0]);
  if (local_.address().empty() && here.size() > 1) local_.set_address(here[1]->link->own_address());
  for (std::size_t i = 1; i < here.size(); ++i) {
    for (int rank = 0; rank < offers[i].workers; ++rank) here[i]->running.insert(places[i].first_rank + rank);
    here[i]->link->send(start_message(attempt, places[i]));
  }
}

std::optional<std::int64_t> Leader::furthest_step() const { return std::max(furthest_step_, local_.furthest_step()); }

bool Leader::running() const {
  return local_.running() ||
         std::ranges::any_of(roster_.seats(), [](const Seat& seat) { return !seat.running.empty(); });
}

std::string Leader::running_names() const {
  std::string names = local_.running_names();
  for (const Seat& seat : roster_.seats())
    for (const int rank : seat.running)
      names += fmt::format("{}rank {} (on {})", names.empty() ? "" : ", ", rank, seat.offer.host);
  return names;
}

WorkerEvents Leader::wait(std::optional<Deadline> deadline) {
  std::vector<int> fds = roster_.fds();
  if (mirror_) fds.push_back(mirror_->fd());
  // No longer, so that all hear of each other, and strangers who say nothing are turned away.
  const auto beat = Deadline::after(signals_.empty() ? NodeLink::kBetweenBeats : std::chrono::seconds(0));
  WorkerEvents events = local_.wait(earlier(roster_.next_look(), earlier(deadline, beat)), fds);
  if (events.signal != 0) take_signal(events.signal, 0);
  share_keys();
  const bool somebody_came = roster_.admit();
  events.regroup |= somebody_came && elastic();
  for (Seat& seat : roster_.seats())
    if (seat.taken()) hear(seat, events);
  events.signal = signals_.empty() ? 0 : signals_.front();
  if (!signals_.empty()) signals_.pop_front();
  return events;
}

void Leader::take_signal(int number, int node) {
  if (echoes_.is_new(number, node)) signals_.push_back(number);
}

void Leader::hear(Seat& seat, WorkerEvents& events) {
  for (const json& message : seat.link->receive()) try {
      act(seat, message, events);
    } catch (const json::exception& error) {
      seat.link->close(error.what());
    }
  seat.link->beat();
  if (!seat.link->open()) lose(seat, events);
}

void Leader::act(Seat& seat, const json& message, WorkerEvents& events) {
  const std::string say = message.at("say");
  if (say == "signal") take_signal(message.at("number"), seat.offer.node);
  if (say == "leave") {
    seat.leaving = events.regroup = true;
    say_(fmt::format("node {} ({}) leaves", seat.offer.node, seat.offer.host));
  }
  if (say == "exit") {
    WorkerExit exit = exit_in(message);
    const std::int64_t step = message.at("step");
    if (step >= 0) furthest_step_ = std::max(furthest_step_, std::optional(step));
    if (seat.running.erase(exit.rank) > 0) events.exits.push_back(std::move(exit));
  }
  if (say == "key" && mirror_) {
    mirror_->put(message.at("name"), key_in(message));
    for (Seat& other : roster_.seats())
      if (&other != &seat && other.taken()) other.link->send(message);
  }
}

/// Its workers end with its connection, or their host is gone. Those of an agent that is stopped go on until it is continued,
/// or until they miss the others; what they write is of an attempt that nobody looks at any more.
void Leader::lose(Seat& seat, WorkerEvents& events) {
  const std::string why =
      fmt::format("node {} ({}) is gone: {}", seat.offer.node, seat.offer.host, seat.link->reason());
  say_(why);
  node_lost_ = true;
  events.regroup |= elastic();
  if (!elastic())
    for (const int rank : seat.running)
      events.exits.push_back({.rank = rank, .code = kPeerLost, .host = seat.offer.host, .message = why});
  seat = {};
}

bool Leader::can_go_on_without_a_node() {
  const auto deadline = Deadline::after(NodeLink::kAgentSilence + NodeLink::kBetweenBeats);
  while (elastic() && !node_lost_ && roster_.present() > 1 && !deadline.passed()) wait_a_moment(deadline);
  return elastic() && node_lost_;
}

void Leader::send(int number) noexcept {
  roster_.tell_all(signal_message(number));
  local_.send(number);
}

void Leader::suspend() {
  roster_.tell_all(signal_message(SIGSTOP));
  for (Seat& seat : roster_.seats())
    if (seat.taken()) seat.link->pause();
  local_.suspend();
  roster_.tell_all(signal_message(SIGCONT));
}

void Leader::finish(int code) { roster_.tell_all(finish_message(code)); }

void Leader::share_keys() {
  if (!mirror_) return;
  for (const auto& [name, value] : mirror_->changes()) roster_.tell_all(key_message(name, value));
}

}  // namespace gradring::train
