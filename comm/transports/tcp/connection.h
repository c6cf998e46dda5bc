// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/transport/group_failure.h"
#include "comm/transport/message.h"
#include "kernels/base/file.h"

namespace gradring::comm::tcp {

/// The frames that ranks exchange after the handshake.
enum class FrameKind : std::uint8_t {
  data,        ///< a move's slice follows as payload
  allocation,  ///< the rank has reached allocation number `segment`, of `elements` bytes
  ask,         ///< for which rank do you wait? Question number `collective`; a rank answers while it waits
  waiting,     ///< the answer to that question: for rank `subject`
  goodbye,     ///< the rank leaves: why (`reason`) and which rank failed (`subject`)
};

/// The header of every frame: fixed length, little-endian. Only data frames have a payload, `elements` elements of
/// `dtype`.
struct Frame {
  static constexpr std::uint32_t kMagic = 0x31465247;  // "GRF1"

  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::data;
  kernels::DType dtype = kernels::DType::u8;
  Algorithm algorithm = Algorithm::ring;
  std::uint8_t zero = 0;
  GroupState reason = GroupState::member;
  std::int32_t subject = -1;   ///< a rank: the root of a collective, the one that is awaited, or that failed; or -1
  std::uint64_t sequence = 0;  ///< number of the frame in this direction of the connection, from 1
  std::array<char, 16> operation{};
  std::uint64_t collective = 0;
  std::uint64_t step = 0;
  std::uint64_t segment = 0;
  std::uint64_t range_offset = 0;
  std::uint64_t range_elements = 0;
  std::uint64_t offset = 0;
  std::uint64_t elements = 0;

  std::size_t payload_bytes() const { return kind == FrameKind::data ? elements * size_of(dtype) : 0; }
};
static_assert(sizeof(Frame) == 96 && std::has_unique_object_representations_v<Frame>, "padding would be sent");

/// Whether received bytes are a valid frame with the expected sequence number, in a world of that size.
bool is_valid(const Frame& frame, std::uint64_t sequence, int world_size);

Frame data_frame(const MessageHeader& message);
/// The inverse of data_frame.
MessageHeader message_of(const Frame& frame);

/// Frames to and from one peer over one connected non-blocking socket. No member function waits: frames that the kernel
/// does not accept yet stay in a queue.
///
/// Payloads are not copied in user space, except the first few kilobytes that arrive together with a frame header, and
/// what read_ahead buffers: half a megabyte at most.
///
/// Threads   one thread at a time.
class Connection {
 public:
  /// Closed if there is no socket.
  explicit Connection(UniqueFd socket);

  int fd() const { return socket_.get(); }

  /// Queues a frame. `payload` must not change while has_unsent_in() is true for it.
  void send(Frame frame, std::span<const std::byte> payload = {});
  /// Sends as much as the kernel accepts now.
  void flush();
  bool has_unsent() const { return !outgoing_.empty(); }
  /// Whether an unsent payload overlaps [begin, begin + bytes).
  bool has_unsent_in(const std::byte* begin, std::size_t bytes) const;
  /// Whether a frame that the peer waits for (data or allocation) is unsent.
  bool has_unsent_message() const;
  /// Whether the peer still accepts data.
  bool writable() const { return writable_; }

  /// The oldest received frame that is not taken, once its header is complete; else null.
  const Frame* front();
  /// Reads the available part of the front's payload, at most `bytes`. Returns its length.
  std::size_t receive(std::byte* to, std::size_t bytes);
  /// Drops the front; requires that its payload was read.
  void take_front() { has_front_ = false; }
  bool has_front() const { return has_front_; }
  /// Whether the next front is buffered already, so that polling the socket does not report it.
  bool has_buffered_front() const { return !has_front_ && buffered() >= sizeof(Frame); }
  /// Whether more may arrive behind the front, and read_ahead has room for it.
  bool may_read_ahead() const;
  /// Buffers what has arrived behind the front, for next_ahead.
  void read_ahead();
  /// The header of the next buffered frame behind the front, each once; front() returns that frame later. None behind an
  /// invalid one.
  std::optional<Frame> next_ahead(int world_size);
  /// Whether next_ahead has returned the front before.
  bool front_was_seen() const { return received_ <= seen_ahead_; }
  /// The number of frames received so far.
  std::uint64_t received() const { return received_; }
  /// Whether no complete frame can arrive any more: the peer closed, and the rest is less than a frame.
  bool ended() const { return !open_ && buffered() < (has_front_ ? payload_left_ : sizeof(Frame)); }
  /// Whether the peer may send more.
  bool readable() const { return open_; }
  /// errno when the connection ended; 0 if the peer closed it.
  int error_number() const { return error_number_; }

  /// Sends the queue if it has no payloads; their memory may be freed by now. Reads and discards what the peer sent, so
  /// that the kernel does not reset the connection before the last frames arrive.
  void close();

 private:
  struct Outgoing {
    Frame frame;
    std::span<const std::byte> payload;
    std::size_t sent = 0;  // bytes of header and payload
    std::size_t bytes() const { return sizeof(Frame) + payload.size(); }
  };

  std::size_t buffered() const { return buffer_end_ - buffer_begin_; }
  std::size_t take_buffered(std::byte* to, std::size_t bytes);
  std::size_t read(std::byte* to, std::size_t bytes, std::size_t room);
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
  std::size_t payload_left_ = 0;   // of the front
  std::vector<std::byte> buffer_;  // bytes read beyond the requested ones
  std::size_t buffer_begin_ = 0;
  std::size_t buffer_end_ = 0;
  std::uint64_t seen_ahead_ = 0;  // the number of the last frame that next_ahead returned
};

}  // namespace gradring::comm::tcp
