// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gradring::comm::tcp {
namespace {

constexpr std::size_t kMaxBuffers = 32;  // frame headers and payloads of one sendmsg
constexpr std::size_t kBufferBytes = 4096;
constexpr std::size_t kMaxReadAhead = 512 * 1024;  // bytes buffered behind a front: more than a chunk
constexpr std::size_t kMaxDiscarded = 256 * 4096;  // bytes read and dropped when a connection is closed

iovec buffer_of(const void* data, std::size_t bytes) { return {.iov_base = const_cast<void*>(data), .iov_len = bytes}; }

/// Copies what a frame and a message header have under the same names.
template <class From, class To>
void copy_description(const From& from, To& to) {
  to.dtype = from.dtype;
  to.algorithm = from.algorithm;
  to.operation = from.operation;
  to.collective = from.collective;
  to.step = from.step;
  to.segment = from.segment;
  to.range_offset = from.range_offset;
  to.range_elements = from.range_elements;
  to.offset = from.offset;
  to.elements = from.elements;
}

}  // namespace

bool is_valid(const Frame& frame, std::uint64_t sequence, int world_size) {
  return frame.magic == Frame::kMagic && frame.sequence == sequence && frame.kind <= FrameKind::goodbye &&
         frame.dtype <= kernels::DType::u8 && frame.algorithm <= Algorithm::tree &&
         frame.reason <= GroupState::desync && frame.subject >= -1 && frame.subject < world_size &&
         frame.operation.back() == '\0';
}

Frame data_frame(const MessageHeader& message) {
  Frame frame;
  copy_description(message, frame);
  frame.subject = message.root;
  return frame;
}

MessageHeader message_of(const Frame& frame) {
  MessageHeader message;
  copy_description(frame, message);
  message.root = frame.subject;
  return message;
}

Connection::Connection(UniqueFd socket)
    : socket_(std::move(socket)), open_(bool(socket_)), writable_(bool(socket_)), buffer_(kBufferBytes) {}

void Connection::send(Frame frame, std::span<const std::byte> payload) {
  frame.sequence = ++sent_;
  outgoing_.push_back({frame, payload});
}

void Connection::flush() {
  while (writable_ && !outgoing_.empty()) {
    std::array<iovec, kMaxBuffers> buffers;
    std::size_t count = 0;
    for (auto next = outgoing_.begin(); next != outgoing_.end() && count + 2 <= kMaxBuffers; ++next) {
      const std::size_t sent_header = std::min(next->sent, sizeof(Frame));
      const std::size_t sent_payload = next->sent - sent_header;
      if (sent_header < sizeof(Frame))
        buffers[count++] =
            buffer_of(reinterpret_cast<const std::byte*>(&next->frame) + sent_header, sizeof(Frame) - sent_header);
      if (sent_payload < next->payload.size())
        buffers[count++] = buffer_of(next->payload.data() + sent_payload, next->payload.size() - sent_payload);
    }
    msghdr message{};
    message.msg_iov = buffers.data();
    message.msg_iovlen = count;
    const ssize_t taken = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (taken >= 0) {
      drop_sent(static_cast<std::size_t>(taken));
    } else if (errno != EINTR) {
      writable_ = errno == EAGAIN;
      return;
    }
  }
}

void Connection::drop_sent(std::size_t bytes) {
  while (bytes > 0) {
    Outgoing& oldest = outgoing_.front();
    const std::size_t part = std::min(bytes, oldest.bytes() - oldest.sent);
    oldest.sent += part;
    bytes -= part;
    if (oldest.sent == oldest.bytes()) outgoing_.pop_front();
  }
}

bool Connection::has_unsent_in(const std::byte* begin, std::size_t bytes) const {
  return std::ranges::any_of(outgoing_, [&](const Outgoing& sent) {
    return !sent.payload.empty() && sent.payload.data() < begin + bytes &&
           begin < sent.payload.data() + sent.payload.size();
  });
}

bool Connection::has_unsent_message() const {
  return std::ranges::any_of(outgoing_, [](const Outgoing& sent) {
    return sent.frame.kind == FrameKind::data || sent.frame.kind == FrameKind::allocation;
  });
}

const Frame* Connection::front() {
  if (has_front_) return &front_;
  if (buffered() < sizeof(Frame)) read(nullptr, 0, kBufferBytes);
  if (buffered() < sizeof(Frame)) return nullptr;
  take_buffered(reinterpret_cast<std::byte*>(&front_), sizeof(Frame));
  has_front_ = true;
  payload_left_ = front_.payload_bytes();
  ++received_;
  return &front_;
}

std::size_t Connection::receive(std::byte* to, std::size_t bytes) {
  std::size_t count = take_buffered(to, bytes);
  if (count < bytes) count += read(to + count, bytes - count, kBufferBytes);
  payload_left_ -= count;
  return count;
}

std::size_t Connection::take_buffered(std::byte* to, std::size_t bytes) {
  const std::size_t count = std::min(bytes, buffered());
  if (count > 0) std::memcpy(to, buffer_.data() + buffer_begin_, count);
  buffer_begin_ += count;
  return count;
}

bool Connection::may_read_ahead() const { return open_ && has_front_ && buffered() < kMaxReadAhead; }

void Connection::read_ahead() {
  if (!may_read_ahead()) return;
  const std::size_t room = std::min(buffered() + 16 * kBufferBytes, kMaxReadAhead);
  if (buffer_.size() < room) buffer_.resize(std::max(room, buffer_end_));
  read(nullptr, 0, room);
}

std::optional<Frame> Connection::next_ahead(int world_size) {
  std::size_t left = buffered();
  std::size_t behind = payload_left_;  // of the frame before
  for (std::uint64_t sequence = received_ + 1; left >= sizeof(Frame) && behind <= left - sizeof(Frame); ++sequence) {
    left -= behind;
    Frame frame;
    std::memcpy(&frame, buffer_.data() + buffer_end_ - left, sizeof frame);
    if (!is_valid(frame, sequence, world_size)) return std::nullopt;  // an error once it is taken
    if (sequence > seen_ahead_) {
      seen_ahead_ = sequence;
      return frame;
    }
    left -= sizeof frame;
    behind = frame.payload_bytes();
  }
  return std::nullopt;
}

/// One readv: at most `bytes` bytes to `to`, and what follows them into the buffer, up to `room`. Returns the bytes
/// written to `to`.
std::size_t Connection::read(std::byte* to, std::size_t bytes, std::size_t room) {
  if (!open_) return 0;
  std::memmove(buffer_.data(), buffer_.data() + buffer_begin_, buffered());
  buffer_end_ = buffered();
  buffer_begin_ = 0;
  std::array<iovec, 2> buffers = {buffer_of(to, bytes), buffer_of(buffer_.data() + buffer_end_, room - buffer_end_)};
  ssize_t count = 0;
  do {
    count = ::readv(socket_.get(), buffers.data(), 2);
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    const std::size_t placed = std::min(bytes, static_cast<std::size_t>(count));
    buffer_end_ += static_cast<std::size_t>(count) - placed;
    return placed;
  }
  if (count < 0 && errno == EAGAIN) return 0;
  open_ = false;
  error_number_ = count < 0 ? errno : 0;
  return 0;
}

void Connection::close() {
  if (!socket_) return;
  if (std::ranges::all_of(outgoing_, [](const Outgoing& sent) { return sent.payload.empty(); })) flush();
  ::shutdown(socket_.get(), SHUT_WR);
  std::size_t discarded = 0;
  for (ssize_t count = 1; count > 0 && discarded < kMaxDiscarded; discarded += buffer_.size())
    count = ::recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  socket_.reset();
  open_ = writable_ = false;
}

}  // namespace gradring::comm::tcp
