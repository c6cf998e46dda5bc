// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/socket_poll.h"

#include <sys/epoll.h>

#include <array>
#include <ctime>

namespace gradring::comm::tcp {

bool SocketPoll::wait(std::chrono::nanoseconds longest, int spins) {
  const timespec no_wait{};
  for (int spin = 0; spin < spins; ++spin)
    if (const int ready = ::ppoll(sockets_.data(), sockets_.size(), &no_wait, nullptr); ready != 0) return ready > 0;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (longest - seconds).count()};
  return ::ppoll(sockets_.data(), sockets_.size(), &timeout, nullptr) > 0;
}

bool SocketPoll::wait_long(Deadline deadline, const std::function<bool()>& stop) {
  if (!register_changes()) return wait(deadline.nap(), 0);
  std::array<epoll_event, 64> events;
  do {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), poll_timeout(deadline));
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      sockets_[event.data.u32].revents = static_cast<short>(event.events);
    }
    if (count > 0) return true;
  } while (!deadline.passed() && !stop());
  return false;
}

/// False if there is no descriptor or memory for it.
bool SocketPoll::register_changes() {
  static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT);
  if (!epoll_) epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return false;
  for (std::size_t peer = 0; peer < sockets_.size(); ++peer) {
    pollfd& known = registered_[peer];
    const pollfd& wanted = sockets_[peer];
    if (known.events == wanted.events) continue;
    const int change = known.events == 0 ? EPOLL_CTL_ADD : wanted.events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    epoll_event event{.events = static_cast<std::uint32_t>(wanted.events),
                      .data = {.u32 = static_cast<std::uint32_t>(peer)}};
    if (::epoll_ctl(epoll_.get(), change, change == EPOLL_CTL_ADD ? wanted.fd : known.fd, &event) != 0) {
      epoll_.reset();
      registered_.assign(registered_.size(), {});
      return false;
    }
    known = {change == EPOLL_CTL_ADD ? wanted.fd : known.fd, wanted.events, 0};
  }
  return true;
}

}  // namespace gradring::comm::tcp
