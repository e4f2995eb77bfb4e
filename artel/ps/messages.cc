#include "artel/ps/messages.h"

#include <array>
#include <cstring>

#include "artel/base/bytes.h"
#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel::ps {
namespace {

constexpr std::array<std::string_view, 15> kNames = {
    "setup", "assign", "push",   "pull", "exchange", "report", "shares", "freeze",
    "thaw",  "leave",  "change", "done", "values",   "text",   "refusal"};
constexpr int kMostPartials = 64;

}  // namespace

std::string_view to_string(Kind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

void check_header(const Header& header) {
  require(header.magic == Header::kMagic && static_cast<size_t>(header.kind) < kNames.size(),
          ErrorKind::corrupt,
          "[ps] message: got magic {:#x} and kind {}, expected {:#x} and 0 to {}", header.magic,
          static_cast<uint32_t>(header.kind), Header::kMagic, kNames.size() - 1);
  require(header.keys.first <= header.keys.last && header.listed <= header.keys.size() &&
              header.listed <= kMostKeys && header.value_bytes <= kMostValueBytes,
          ErrorKind::corrupt,
          "[ps] {}: got keys {} to {}, {} of them listed, and {} bytes of values",
          to_string(header.kind), header.keys.first, header.keys.last, header.listed,
          header.value_bytes);
  require(header.partials >= 1 && header.partials <= kMostPartials && header.first_lane >= 0 &&
              header.first_lane <= header.last_lane && header.iteration >= 0,
          ErrorKind::corrupt, "[ps] {}: got {} partial sums of lanes {} to {} at iteration {}",
          to_string(header.kind), header.partials, header.first_lane, header.last_lane,
          header.iteration);
}

Message parse_message(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "ps message");
  Message message;
  std::memcpy(&message.header, reader.take(sizeof(Header)).data(), sizeof(Header));
  check_header(message.header);
  const auto keys = reader.take(message.header.listed * sizeof(uint64_t));
  message.keys.resize(message.header.listed);
  if (!keys.empty()) std::memcpy(message.keys.data(), keys.data(), keys.size());
  const auto values = reader.take(message.header.value_bytes);
  message.values.assign(values.begin(), values.end());
  reader.require(reader.left() == 0, "{} bytes follow the message", reader.left());
  return message;
}

uint64_t signature_of(std::span<const uint64_t> keys) {
  const uint64_t hash = hash_name({reinterpret_cast<const char*>(keys.data()), keys.size_bytes()});
  return hash == 0 ? 1 : hash;
}

void Outbox::start(Item& item, std::span<const uint64_t> keys, std::span<const std::byte> values) {
  item.header.listed = keys.size();
  item.header.value_bytes = values.size();
  for (const auto bytes :
       {std::as_bytes(std::span<const Header>(&item.header, 1)), std::as_bytes(keys), values})
    if (!bytes.empty()) item.handles.push_back(group_->send(peer_, tag_, bytes));
}

void Outbox::send(const Header& header, std::span<const uint64_t> keys,
                  std::span<const std::byte> values) {
  start(items_.emplace_back(Item{.header = header}), keys, values);
}

void Outbox::send(const Header& header, std::span<const uint64_t> keys,
                  std::vector<std::byte> values) {
  Item& item = items_.emplace_back(Item{.header = header, .owned = std::move(values)});
  start(item, keys, item.owned);
}

void Outbox::forget(uint64_t count) {
  for (; forgotten_ < count && !items_.empty(); ++forgotten_) {
    for (comm::Handle& handle : items_.front().handles) handle.wait(Deadline::never());
    items_.pop_front();
  }
}

Message receive_message(comm::Group& group, int peer, uint32_t tag, bool patient) {
  const auto receive = [&](std::span<std::byte> bytes, bool may_take_long) {
    if (bytes.empty()) return;
    comm::Handle handle =
        may_take_long ? group.listen(peer, tag, bytes) : group.receive(peer, tag, bytes);
    handle.wait(may_take_long ? Deadline::never() : Deadline::after(group.timeout()));
  };
  Message message;
  receive(std::as_writable_bytes(std::span(&message.header, 1)), patient);
  check_header(message.header);
  message.keys.resize(message.header.listed);
  receive(std::as_writable_bytes(std::span(message.keys)), false);
  message.values.resize(message.header.value_bytes);
  receive(message.values, false);
  return message;
}

}  // namespace artel::ps
