// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace gradring::train {
namespace {

using nlohmann::json;

std::string to_string(const NodeRange& nodes) {
  return nodes.least == nodes.most ? std::to_string(nodes.most) : fmt::format("{}:{}", nodes.least, nodes.most);
}

}  // namespace

Roster::Roster(Doorway doorway, const NodeOffer& own)
    : own_(own), doorway_(std::move(doorway)), seats_(static_cast<std::size_t>(own.nodes.most)) {
  seats_[0].offer = own;
}

int Roster::present() const { return 1 + static_cast<int>(std::ranges::count_if(seats_, &Seat::taken)); }

std::string Roster::missing() const {
  std::string names;
  for (std::size_t node = 1; node < seats_.size(); ++node)
    if (!seats_[node].taken()) names += fmt::format("{}node {}", names.empty() ? "" : ", ", node);
  return names;
}

std::vector<int> Roster::fds() const {
  std::vector<int> fds = doorway_.fds();
  for (const NodeLink& link : newcomers_) fds.push_back(link.fd());
  for (const Seat& seat : seats_)
    if (seat.taken()) fds.push_back(seat.link->fd());
  return fds;
}

bool Roster::admit() {
  bool changed = false;
  newcomers_.splice(newcomers_.end(), doorway_.admit());
  for (auto it = newcomers_.begin(); it != newcomers_.end();) {
    const std::vector<json> messages = it->receive(1);  // what it says next is for whoever asks its seat
    const bool has_spoken = !messages.empty();
    if (has_spoken) try {
        changed |= seat(std::move(*it), offer_in(messages.front()));
      } catch (const json::exception&) {  // not an offer: it goes
      }
    it = has_spoken || !it->open() ? newcomers_.erase(it) : std::next(it);
  }
  return changed;
}

bool Roster::seat(NodeLink link, NodeOffer offer) {
  const auto refuse = [&](const std::string& why) {
    link.send(refuse_message(why));
    return false;
  };
  if (offer.nodes.least != own_.nodes.least || offer.nodes.most != own_.nodes.most)
    return refuse(fmt::format("the leader has --nnodes={}, {} has --nnodes={}: they must be the same",
                              to_string(own_.nodes), offer.host, to_string(offer.nodes)));
  const bool any = offer.node < 0;
  if (offer.node == 0 || offer.node >= own_.nodes.most || offer.workers <= 0) return refuse("there is no such node");
  Seat* place = any ? free_seat() : &seats_[static_cast<std::size_t>(offer.node)];
  if (place == nullptr) return refuse(fmt::format("all {} nodes have come", own_.nodes.most));
  if (place->taken())
    return refuse(
        fmt::format("--node-rank={} has been taken by {}: give each node its own", offer.node, place->offer.host));
  offer.node = static_cast<int>(place - seats_.data());
  *place = Seat{.offer = std::move(offer), .link = std::move(link)};
  return true;
}

Seat* Roster::free_seat() {
  const auto it = std::find_if(seats_.begin() + 1, seats_.end(), [](const Seat& seat) { return !seat.taken(); });
  return it == seats_.end() ? nullptr : &*it;
}

void Roster::tell_all(const json& message) {
  for (Seat& seat : seats_)
    if (seat.taken()) seat.link->send(message);
}

}  // namespace gradring::train
