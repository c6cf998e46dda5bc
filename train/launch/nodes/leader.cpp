// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/runtime/error.h"
#include "train/launch/exit_code.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/places_of_nodes.h"
#include "train/launch/signal_name.h"
#include "train/launch/standalone.h"

namespace gradring::train {

using nlohmann::json;

Leader::Leader(const LaunchOptions& options, WorkerGroup& local, Say say)
    : options_(options),
      local_(local),
      say_(std::move(say)),
      doorway_(options.master_addr, options.master_port, identity_of(options)),
      seats_(static_cast<std::size_t>(options.nnodes.most)) {
  seats_[0].offer = offer_of(options);
}

void Leader::start(int attempt) {
  wait_for_nodes();
  std::vector<NodeOffer> offers;
  for (const Seat& seat : seats_) offers.push_back(seat.offer);
  const auto places = places_of_nodes(offers, options_.master_addr, free_tcp_port());
  world_size_ = places[0].world_size;
  local_.prepare(attempt);
  mirror_.emplace(local_.store());
  for (std::size_t node = 1; node < seats_.size(); ++node) {
    Seat& seat = seats_[node];
    for (int i = 0; i < seat.offer.workers; ++i) seat.running.insert(places[node].first_rank + i);
    seat.link->send(start_message(attempt, places[node]));
  }
  for (const Seat& seat : seats_)
    if (seat.link && local_.address().empty()) local_.set_address(seat.link->own_address());
  local_.set_place(places[0]);
  local_.start(attempt);
}

void Leader::wait_for_nodes() {
  const auto deadline = Deadline::after(options_.join_timeout);
  bool said = false;
  while (!missing_nodes().empty()) {
    if (deadline.passed())
      throw DeviceError(
          fmt::format("{} did not come within {} s: start `gradring launch` there with the same "
                      "--master-addr, --master-port and --rdzv-id",
                      missing_nodes(), std::chrono::duration<double>(options_.join_timeout).count()));
    const WorkerEvents events =
        wait(Deadline::after(std::min<std::chrono::nanoseconds>(deadline.remaining(), std::chrono::seconds(1))));
    if (stops_a_run(events.signal)) throw StartInterrupted{events.signal};
    if (!std::exchange(said, true) && !missing_nodes().empty()) say_(fmt::format("waiting for {}", missing_nodes()));
  }
}

std::string Leader::missing_nodes() const {
  std::string names;
  for (std::size_t node = 1; node < seats_.size(); ++node)
    if (!seats_[node].link) names += fmt::format("{}node {}", names.empty() ? "" : ", ", node);
  return names;
}

bool Leader::running() const {
  return local_.running() || std::ranges::any_of(seats_, [](const Seat& seat) { return !seat.running.empty(); });
}

std::string Leader::running_names() const {
  std::string names = local_.running_names();
  for (const Seat& seat : seats_)
    for (const int rank : seat.running)
      names += fmt::format("{}rank {} (on {})", names.empty() ? "" : ", ", rank, seat.offer.host);
  return names;
}

std::vector<int> Leader::fds() const {
  std::vector<int> fds = doorway_.fds();
  for (const NodeLink& link : newcomers_) fds.push_back(link.fd());
  for (const Seat& seat : seats_)
    if (seat.link) fds.push_back(seat.link->fd());
  if (mirror_) fds.push_back(mirror_->fd());
  return fds;
}

WorkerEvents Leader::wait(std::optional<Deadline> deadline) {
  WorkerEvents events = local_.wait(deadline, fds());
  furthest_step_ = std::max(furthest_step_, local_.furthest_step());
  share_keys();
  for (Seat& seat : seats_)
    if (seat.link) hear(seat, events);
  admit();
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
  if (say == "exit") {
    WorkerExit exit = exit_in(message);
    if (const std::int64_t step = message.at("step"); step >= 0)
      furthest_step_ = std::max(furthest_step_, std::optional(step));
    if (seat.running.erase(exit.rank) > 0) events.exits.push_back(std::move(exit));
  }
  if (say == "key" && mirror_) {
    const auto value = key_in(message);
    mirror_->put(message.at("name"), value);
    for (Seat& other : seats_)
      if (&other != &seat && other.link) other.link->send(message);
  }
}

/// Its workers end with its connection: they are told to, or their host is gone.
void Leader::lose(Seat& seat, WorkerEvents& events) {
  const std::string why =
      fmt::format("node {} ({}) is gone: {}", seat.offer.node, seat.offer.host, seat.link->reason());
  for (const int rank : std::exchange(seat.running, {}))
    events.exits.push_back({.rank = rank, .code = kPeerLost, .host = seat.offer.host, .message = why});
  say_(why);
  seat.link.reset();
}

void Leader::admit() {
  newcomers_.splice(newcomers_.end(), doorway_.admit());
  for (auto it = newcomers_.begin(); it != newcomers_.end();) {
    const auto messages = it->receive();
    bool seated = false;
    for (const json& message : messages) try {
        if (!std::exchange(seated, true)) seat(std::move(*it), offer_in(message));
      } catch (const json::exception&) {  // not an offer: it goes
      }
    it = seated || !it->open() ? newcomers_.erase(it) : std::next(it);
  }
}

void Leader::seat(NodeLink link, const NodeOffer& offer) {
  const int nodes = options_.nnodes.most;
  if (offer.nodes != nodes)
    return link.send(refuse_message(fmt::format("node 0 has --nnodes={}, node {} --nnodes={}: they must be the same",
                                                nodes, offer.node, offer.nodes)));
  if (offer.node <= 0 || offer.node >= nodes || offer.workers <= 0) return;
  Seat& place = seats_[static_cast<std::size_t>(offer.node)];
  if (place.link)
    return link.send(refuse_message(
        fmt::format("--node-rank={} has been taken by {}: give each node its own", offer.node, place.offer.host)));
  place.offer = offer;
  place.link.emplace(std::move(link));
}

void Leader::tell_all(const json& message) {
  for (Seat& seat : seats_)
    if (seat.link) seat.link->send(message);
}

void Leader::send(int number) noexcept {
  tell_all(signal_message(number));
  local_.send(number);
}

void Leader::suspend() {
  tell_all(signal_message(SIGSTOP));
  local_.suspend();
  tell_all(signal_message(SIGCONT));
}

void Leader::share_keys() {
  if (!mirror_) return;
  for (const auto& [name, value] : mirror_->changes()) tell_all(key_message(name, value));
}

void Leader::finish(int code) { tell_all(finish_message(code)); }

}  // namespace gradring::train
