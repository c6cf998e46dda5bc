// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>

#include "comm/transport/tcp/frame.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::comm::tcp {

/// Frames to and from one peer over one connected socket. Nothing here waits: a frame that the system does not take now
/// stays in a queue, and one that has not come yet is not there.
///
/// The payload of a frame goes from where it lies to the system, uncopied, and comes from the system to where it
/// belongs, but for its first few kilobytes, which may come along with the head of its frame.
///
/// Threads   one thread at a time.
class Connection {
 public:
  Connection() = default;  ///< to nobody: takes nothing, brings nothing, closed
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)), open_(true), writable_(true) {}

  int fd() const { return socket_.get(); }

  /// Puts a frame behind what is still to be sent. `payload` must stay as it is while holds() says so.
  void send(Frame frame, std::span<const std::byte> payload = {});
  /// Hands the system as much as it takes.
  void flush();
  /// Whether something is still to be sent.
  bool has_unsent() const { return !outgoing_.empty(); }
  /// Whether a payload that lies in [begin, begin + bytes) is still to be sent.
  bool holds(const std::byte* begin, std::size_t bytes) const;
  /// Whether a frame is still to be sent that the peer cannot do without: any but news.
  bool owes() const;
  /// Whether the peer takes anything.
  bool writable() const { return writable_; }

  /// The oldest frame that was not taken, as soon as its head is there; null before that.
  const Frame* front();
  /// Reads what is there of the front's payload, at most `bytes`. Returns how much.
  std::size_t receive(std::byte* to, std::size_t bytes);
  /// Forgets the front, of which the whole payload was read.
  void take_front() { has_front_ = false; }
  bool has_front() const { return has_front_; }
  /// Whether the next front is here already: it came along with what was read before, so the system will not tell of it.
  bool has_buffered_front() const { return !has_front_ && buffered() >= sizeof(Frame); }
  /// How many frames were found so far.
  std::uint64_t received() const { return received_; }
  /// Whether nothing whole will come any more: the peer sends no more, and what it sent last is no whole frame.
  bool ended() const { return !open_ && buffered() < (has_front_ ? payload_left_ : sizeof(Frame)); }
  /// Whether the peer may send more.
  bool readable() const { return open_; }
  /// What the system said when it ended; 0 if the peer closed it in good order.
  int error_number() const { return error_number_; }

  /// Sends what is left, unless payloads are among it: who closes may have freed them. Whatever the peer still says is
  /// thrown away, so that the system does not cut the connection for it while the last frames are on their way.
  void close();

 private:
  struct Outgoing {
    Frame frame;
    std::span<const std::byte> payload;
    std::size_t sent = 0;  // of head and payload
    std::size_t bytes() const { return sizeof(Frame) + payload.size(); }
  };

  std::size_t buffered() const { return buffer_end_ - buffer_begin_; }
  std::size_t take_buffered(std::byte* to, std::size_t bytes);
  std::size_t read(std::byte* to, std::size_t bytes);
  void drop_sent(std::size_t bytes);

  UniqueFd socket_;
  bool open_ = false;      // for reading
  bool writable_ = false;  // for writing
  int error_number_ = 0;
  std::deque<Outgoing> outgoing_;
  std::uint64_t sent_ = 0;  // frames
  std::uint64_t received_ = 0;
  bool has_front_ = false;
  Frame front_;
  std::size_t payload_left_ = 0;        // of the front
  std::array<std::byte, 4096> buffer_;  // bytes that came along with those that were asked for
  std::size_t buffer_begin_ = 0;
  std::size_t buffer_end_ = 0;
};

}  // namespace gradring::comm::tcp
