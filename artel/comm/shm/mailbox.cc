#include "artel/comm/shm/mailbox.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace artel::comm::shm {
namespace {

struct Header {
  uint64_t tag;
  uint64_t bytes;
};

size_t room(const Ring& ring) {
  return kRingBytes - (ring.written.load(std::memory_order_relaxed) -
                       ring.consumed.load(std::memory_order_acquire));
}

size_t filled(const Ring& ring) {
  return ring.written.load(std::memory_order_acquire) -
         ring.consumed.load(std::memory_order_relaxed);
}

// Copies to or from the ring at a position, around its end.
void write_at(Ring& ring, uint64_t position, const std::byte* data, size_t bytes) {
  const size_t begin = position % kRingBytes;
  const size_t first = std::min(bytes, kRingBytes - begin);
  std::memcpy(ring.data + begin, data, first);
  std::memcpy(ring.data, data + first, bytes - first);
}

void read_at(const Ring& ring, uint64_t position, std::byte* data, size_t bytes) {
  const size_t begin = position % kRingBytes;
  const size_t first = std::min(bytes, kRingBytes - begin);
  std::memcpy(data, ring.data + begin, first);
  std::memcpy(data + first, ring.data, bytes - first);
}

// Readers and writers publish progress piece by piece, so both sides work at the same time.
constexpr size_t kPiece = kRingBytes / 4;

}  // namespace

struct Mailbox::Message {
  int peer;
  uint64_t tag;
  std::byte* data;
  size_t bytes;
  bool outgoing;
  bool started = false;
  bool done = false;
  size_t moved = 0;
  std::vector<std::byte> own;  // storage of a message without another owner
  std::string error;
};

class Mailbox::MailTransfer : public Transfer {
 public:
  MailTransfer(Mailbox& mailbox, MessagePointer message)
      : mailbox_(mailbox), message_(std::move(message)) {}
  ~MailTransfer() override { mailbox_.give_up(message_); }
  bool wait(double seconds) override { return mailbox_.wait(*message_, seconds); }

 private:
  Mailbox& mailbox_;
  MessagePointer message_;
};

Mailbox::Mailbox(Segment& segment, std::vector<int> names, const TrafficMeter& traffic)
    : segment_(segment), names_(std::move(names)), traffic_(traffic), peers_(segment.size()) {}

std::unique_ptr<Transfer> Mailbox::send(int peer, uint64_t tag, std::span<const std::byte> data) {
  auto message = std::make_shared<Message>(
      Message{peer, tag, const_cast<std::byte*>(data.data()), data.size(), true});
  const MutexLock lock(mutex_);
  peers_[peer].outgoing.push_back(message);
  push(peer);
  return std::make_unique<MailTransfer>(*this, std::move(message));
}

std::unique_ptr<Transfer> Mailbox::receive(int peer, uint64_t tag, std::span<std::byte> data) {
  auto message = std::make_shared<Message>(Message{peer, tag, data.data(), data.size(), false});
  const MutexLock lock(mutex_);
  auto& early = peers_[peer].unexpected;
  const auto found = early.find(tag);
  if (found == early.end()) {
    peers_[peer].expected[tag].push_back(message);
  } else {
    // Copies the bytes that have arrived so far. The rest follows into the new buffer.
    const MessagePointer arrived = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) early.erase(found);
    if (arrived->bytes != data.size())
      message->error =
          fmt::format("got a message of {} bytes, expected {}", arrived->bytes, data.size());
    else if (arrived->moved > 0)
      std::memcpy(data.data(), arrived->data, arrived->moved);
    message->moved = arrived->moved;
    message->done = arrived->done;
    message->started = true;
    if (peers_[peer].arriving == arrived && message->error.empty()) peers_[peer].arriving = message;
  }
  return std::make_unique<MailTransfer>(*this, std::move(message));
}

bool Mailbox::wait(Message& message, double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  Event& bell = segment_.bell(segment_.rank());
  while (true) {
    const uint32_t seen = bell.value.load();
    {
      const MutexLock lock(mutex_);
      if (!message.done) progress();
      require(message.error.empty(), ErrorKind::communication, "[comm shm] from rank {}: {}",
              names_[message.peer], message.error);
      if (message.done) return true;
    }
    if (deadline.passed() || segment_.failed()) return false;
    await(
        bell, segment_.spin(), [&](uint32_t value) { return value != seen; },
        [&] { return deadline.left(); });
  }
}

bool Mailbox::busy() {
  const MutexLock lock(mutex_);
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return !peer.outgoing.empty() || !peer.expected.empty() || peer.arriving != nullptr;
  });
}

void Mailbox::attend(double seconds) {
  Event& bell = segment_.bell(segment_.rank());
  const uint32_t seen = bell.value.load();
  {
    const MutexLock lock(mutex_);
    progress();
  }
  await(
      bell, Spin{0, 0}, [&](uint32_t value) { return value != seen; }, [&] { return seconds; });
}

void Mailbox::wake() { shm::ring(segment_.bell(segment_.rank())); }

void Mailbox::give_up(const MessagePointer& message) {
  const MutexLock lock(mutex_);
  if (message->done) return;
  Peer& peer = peers_[message->peer];
  if (message->started) {
    // The stream must stay in step: finish it with storage of our own.
    message->own.assign(message->data, message->data + message->bytes);
    message->data = message->own.data();
  } else if (message->outgoing) {
    std::erase(peer.outgoing, message);
  } else {
    auto& queue = peer.expected[message->tag];
    std::erase(queue, message);
    if (queue.empty()) peer.expected.erase(message->tag);
  }
}

void Mailbox::progress() {
  for (int peer = 0; peer < segment_.size(); ++peer) {
    if (peer == segment_.rank()) continue;
    while (push(peer)) {
    }
    while (pull(peer)) {
    }
  }
}

// Moves one piece of the first outgoing message into the ring. Returns false if there is no work.
bool Mailbox::push(int peer) {
  auto& outgoing = peers_[peer].outgoing;
  if (outgoing.empty()) return false;
  Message& message = *outgoing.front();
  Ring& ring = segment_.ring(segment_.rank(), peer);
  uint64_t position = ring.written.load(std::memory_order_relaxed);
  size_t space = room(ring);
  if (!message.started) {
    if (space < sizeof(Header)) return false;
    const Header header{message.tag, message.bytes};
    write_at(ring, position, reinterpret_cast<const std::byte*>(&header), sizeof(header));
    position += sizeof(header);
    space -= sizeof(header);
    message.started = true;
  } else if (space == 0) {
    return false;
  }
  const size_t bytes = std::min({space, kPiece, message.bytes - message.moved});
  if (bytes > 0) write_at(ring, position, message.data + message.moved, bytes);
  message.moved += bytes;
  ring.written.store(position + bytes, std::memory_order_release);
  shm::ring(segment_.bell(peer));
  if (message.moved == message.bytes) {
    message.done = true;
    traffic_[names_[peer]].count_sent(sizeof(Header) + message.bytes, 1);
    outgoing.pop_front();
  }
  return true;
}

// Takes one piece out of the ring. Returns false if the ring is empty.
bool Mailbox::pull(int from) {
  Peer& peer = peers_[from];
  Ring& ring = segment_.ring(from, segment_.rank());
  size_t available = filled(ring);
  uint64_t position = ring.consumed.load(std::memory_order_relaxed);
  if (peer.arriving == nullptr) {
    if (available < sizeof(Header)) return false;
    Header header;
    read_at(ring, position, reinterpret_cast<std::byte*>(&header), sizeof(header));
    position += sizeof(header);
    available -= sizeof(header);
    begin_arrival(from, header.tag, header.bytes);
  } else if (available == 0) {
    return false;
  }
  Message& message = *peer.arriving;
  const size_t bytes = std::min({available, kPiece, message.bytes - message.moved});
  if (bytes > 0) read_at(ring, position, message.data + message.moved, bytes);
  message.moved += bytes;
  ring.consumed.store(position + bytes, std::memory_order_release);
  shm::ring(segment_.bell(from));
  if (message.moved == message.bytes) {
    message.done = true;
    traffic_[names_[from]].count_received(sizeof(Header) + message.bytes, 1);
    peer.arriving = nullptr;
  }
  return true;
}

void Mailbox::begin_arrival(int from, uint64_t tag, uint64_t bytes) {
  Peer& peer = peers_[from];
  const auto found = peer.expected.find(tag);
  if (found != peer.expected.end()) {
    MessagePointer message = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) peer.expected.erase(found);
    if (message->bytes == bytes) {
      message->started = true;
      peer.arriving = std::move(message);
      return;
    }
    message->error = fmt::format("got a message of {} bytes, expected {}", bytes, message->bytes);
    message->done = true;
  }
  auto message = std::make_shared<Message>(Message{from, tag, nullptr, bytes, false});
  message->own.resize(bytes);
  message->data = message->own.data();
  message->started = true;
  if (found == peer.expected.end()) peer.unexpected[tag].push_back(message);
  peer.arriving = std::move(message);
}

}  // namespace artel::comm::shm
