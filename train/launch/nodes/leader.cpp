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

/// So that deadlines are looked at, and strangers who say nothing are turned away.
constexpr auto kBetweenLooks = std::chrono::seconds(1);

}  // namespace

Leader::Leader(const LaunchOptions& options, Doorway doorway, WorkerGroup& local, Say say)
    : options_(options), local_(local), say_(std::move(say)), roster_(std::move(doorway), offer_of(options)) {}

void Leader::start(int attempt) {
  let_go();
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
  for (int before = roster_.present(); !enough(last_call);) {
    const bool few = roster_.present() < options_.nnodes.least;
    if (few && deadline.passed())
      throw DeviceError(
          fmt::format("{} did not come within {} s: start `gradring launch` there with the same address, "
                      "port and --rdzv-id",
                      roster_.missing(), std::chrono::duration<double>(options_.join_timeout).count()));
    const auto left = few ? deadline.remaining() : last_call.remaining();
    const WorkerEvents events = wait(Deadline::after(std::min<std::chrono::nanoseconds>(left, kBetweenLooks)));
    if (stops_a_run(events.signal)) throw StartInterrupted{events.signal};
    if (std::exchange(before, roster_.present()) < options_.nnodes.least)
      last_call = Deadline::after(options_.last_call);
    if (!std::exchange(said, true) && !enough(last_call)) say_(fmt::format("waiting for {}", roster_.missing()));
  }
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
  local_.prepare(attempt);
  mirror_.emplace(local_.store());
  local_.set_place(places[0]);
  if (local_.address().empty() && here.size() > 1) local_.set_address(here[1]->link->own_address());
  for (std::size_t i = 1; i < here.size(); ++i) {
    for (int rank = 0; rank < offers[i].workers; ++rank) here[i]->running.insert(places[i].first_rank + rank);
    here[i]->link->send(start_message(attempt, places[i]));
  }
}

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
  WorkerEvents events = local_.wait(deadline, fds);
  furthest_step_ = std::max(furthest_step_, local_.furthest_step());
  share_keys();
  for (Seat& seat : roster_.seats())
    if (seat.taken()) hear(seat, events);
  const bool somebody_came = roster_.admit();
  events.regroup |= somebody_came && elastic();
  return events;
}

void Leader::hear(Seat& seat, WorkerEvents& events) {
  for (const json& message : seat.link->receive()) try {
      act(seat, message, events);
    } catch (const json::exception& error) {
      seat.link->close(error.what());
    }
  if (!seat.link->open()) lose(seat, events);
}

void Leader::act(Seat& seat, const json& message, WorkerEvents& events) {
  const std::string say = message.at("say");
  if (say == "signal" && events.signal == 0) events.signal = message.at("number");
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

/// Its workers end with its connection: they are told to, or their host is gone.
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
  const auto deadline = Deadline::after(std::chrono::seconds(NodeLink::kSilenceSeconds + 1));
  while (elastic() && !node_lost_ && !deadline.passed()) wait(deadline);
  return elastic() && node_lost_;
}

void Leader::send(int number) noexcept {
  roster_.tell_all(signal_message(number));
  local_.send(number);
}

void Leader::suspend() {
  roster_.tell_all(signal_message(SIGSTOP));
  local_.suspend();
  roster_.tell_all(signal_message(SIGCONT));
}

void Leader::finish(int code) { roster_.tell_all(finish_message(code)); }

void Leader::share_keys() {
  if (!mirror_) return;
  for (const auto& [name, value] : mirror_->changes()) roster_.tell_all(key_message(name, value));
}

}  // namespace gradring::train
