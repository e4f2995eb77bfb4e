// How the server that answers for a range keeps the copy of another one up to date.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "artel/ps/kept_range.h"
#include "artel/ps/messages.h"

namespace artel::ps {

// The side of whoever answers. It answers for a change when the copy has it, too.
class BackupLink {
 public:
  BackupLink(std::shared_ptr<comm::Group> group, int peer, int range);

  void set_up(const Setup& setup);
  // `values` are those of change.keys.
  void send(const Change& change, std::span<const float> values, const std::string& squares);
  // No change follows.
  void leave();

  // Messages so far, and how many of them are known to have been dealt with.
  uint64_t sent() const { return sent_; }
  uint64_t arrived() const { return arrived_; }
  // Waits for the next sign of what has been dealt with. Other calls may go on meanwhile; `arrive`
  // then takes note of it.
  uint64_t receive();
  void arrive(uint64_t count);

 private:
  void send(const Header& header, std::vector<std::byte> bytes);

  std::shared_ptr<comm::Group> group_;
  int peer_, range_;
  Outbox outbox_;
  uint64_t sent_ = 0, arrived_ = 0;
};

// The side of the copy, until the other one leaves: makes each change that it is told of. `slot` is
// null until the range has been set up.
void keep_copy(const std::shared_ptr<comm::Group>& group, int peer, int range,
               std::shared_ptr<KeptRange>& slot, const UserRules& rules);

// A whole range, between two memberships.
void send_range(Outbox& outbox, KeptRange& range);
std::shared_ptr<KeptRange> receive_range(comm::Group& group, int peer, uint32_t tag,
                                         const UserRules& rules);

}  // namespace artel::ps
