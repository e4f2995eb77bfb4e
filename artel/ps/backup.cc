#include "artel/ps/backup.h"

#include <cstring>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Shard::Allocate allocator_of(comm::Group& group) {
  return [&group](size_t bytes) { return group.allocate(bytes); };
}

// A message of the primary: the change, the values of its keys, and squares as text.
void follow(KeptRange& range, const Message& message) {
  Change change;
  require(message.values.size() >= sizeof change, ErrorKind::corrupt,
          "[ps] change: got {} bytes, expected at least {}", message.values.size(), sizeof change);
  std::memcpy(static_cast<void*>(&change), message.values.data(), sizeof change);
  const size_t bytes = change.keys.size() * sizeof(float);
  require(
      range.shard().keys().contains(change.keys) && message.values.size() - sizeof change >= bytes,
      ErrorKind::corrupt, "[ps] change: got {} bytes for keys {} to {}", message.values.size(),
      change.keys.first, change.keys.last);
  std::vector<float> values(change.keys.size());
  if (bytes > 0) std::memcpy(values.data(), message.values.data() + sizeof change, bytes);
  const std::string_view squares = message.value_text().substr(sizeof change + bytes);
  const uint64_t most = std::max<uint64_t>(1, range.shard().most_keys_at_once());
  for (uint64_t first = change.keys.first; first < change.keys.last; first += most) {
    const KeyRange part = {first, std::min(first + most, change.keys.last)};
    range.make(change, part, std::span(values).subspan(first - change.keys.first, part.size()));
  }
  range.note(change, std::string(squares));
  if (change.pushes <= range.pushes) return;
  range.staleness[change.staleness] += static_cast<int64_t>(change.pushes - range.pushes);
  range.pushes = change.pushes;
}

}  // namespace

BackupLink::BackupLink(std::shared_ptr<comm::Group> group, int peer, int range)
    : group_(std::move(group)),
      peer_(peer),
      range_(range),
      outbox_(group_, peer, change_tag(range)) {}

void BackupLink::send(const Header& header, std::vector<std::byte> bytes) {
  ++sent_;
  outbox_.send(header, std::move(bytes));
}

void BackupLink::set_up(const Setup& setup) {
  send({.kind = Kind::setup}, bytes_of(to_text(setup)));
}

void BackupLink::send(const Change& change, std::span<const float> values,
                      const std::string& squares) {
  std::vector<std::byte> bytes(sizeof change + values.size_bytes() + squares.size());
  std::memcpy(bytes.data(), &change, sizeof change);
  if (!values.empty())
    std::memcpy(bytes.data() + sizeof change, values.data(), values.size_bytes());
  if (!squares.empty())
    std::memcpy(bytes.data() + sizeof change + values.size_bytes(), squares.data(), squares.size());
  send({.kind = Kind::change, .keys = change.keys}, std::move(bytes));
}

void BackupLink::leave() { send(Header{.kind = Kind::leave}, {}); }

uint64_t BackupLink::receive() {
  uint64_t count = 0;
  group_->listen(peer_, changed_tag(range_), std::as_writable_bytes(std::span(&count, 1)))
      .wait(Deadline::never());
  return count;
}

void BackupLink::arrive(uint64_t count) {
  arrived_ = count;
  outbox_.forget(count);
}

void keep_copy(const std::shared_ptr<comm::Group>& group, int peer, int range,
               std::shared_ptr<KeptRange>& slot, const UserRules& rules) {
  for (uint64_t count = 1;; ++count) {
    const Message message = receive_message(*group, peer, change_tag(range), true);
    if (message.header.kind == Kind::setup) {
      const Setup setup = setup_from_text(message.value_text());
      if (slot)
        slot->adopt(setup);
      else
        slot = std::make_shared<KeptRange>(setup, rules, allocator_of(*group));
    } else if (message.header.kind == Kind::change) {
      require(slot != nullptr, ErrorKind::corrupt, "[ps] change: got one before the setup");
      follow(*slot, message);
    }
    group->send(peer, changed_tag(range), std::as_bytes(std::span(&count, 1)))
        .wait(Deadline::never());
    if (message.header.kind == Kind::leave) return;
  }
}

void send_range(Outbox& outbox, KeptRange& range) {
  const KeyRange all = range.shard().keys();
  outbox.send({.kind = Kind::text}, bytes_of(to_text(range.setup())));
  outbox.send({.kind = Kind::text}, bytes_of(range.log_text()));
  for (int state = -1; state < range.shard().states(); ++state)
    outbox.send(
        {.kind = Kind::values, .keys = all, .state = state}, {},
        std::as_bytes(state < 0 ? range.shard().values(all) : range.shard().state(state, all)));
}

std::shared_ptr<KeptRange> receive_range(comm::Group& group, int peer, uint32_t tag,
                                         const UserRules& rules) {
  const Setup setup = setup_from_text(receive_message(group, peer, tag, false).value_text());
  auto range = std::make_shared<KeptRange>(setup, rules, allocator_of(group));
  range->restore_log(receive_message(group, peer, tag, false).value_text());
  const KeyRange all = range->shard().keys();
  for (int state = -1; state < range->shard().states(); ++state) {
    const Message message = receive_message(group, peer, tag, false);
    const std::span<float> target =
        state < 0 ? range->shard().values(all) : range->shard().state(state, all);
    require(message.values.size() == target.size_bytes(), ErrorKind::corrupt,
            "[ps] copy of keys {} to {}: got {} bytes, expected {}", all.first, all.last,
            message.values.size(), target.size_bytes());
    if (!target.empty()) std::memcpy(target.data(), message.values.data(), target.size_bytes());
  }
  return range;
}

}  // namespace artel::ps
