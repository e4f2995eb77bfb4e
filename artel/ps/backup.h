// Replication of a range from its primary server to the backup.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "artel/ps/kept_range.h"
#include "artel/ps/messages.h"

namespace artel::ps {

// The primary's side. The primary acknowledges a change to a worker only after the backup has it.
class BackupLink {
 public:
  BackupLink(std::shared_ptr<comm::Group> group, int peer, int range);

  void set_up(const Setup& setup);
  // `values` belong to change.keys.
  void send(const Change& change, std::span<const float> values, const std::string& squares);
  // Announces that no change follows.
  void leave();

  // Number of messages sent, and number acknowledged by the backup.
  uint64_t sent() const { return sent_; }
  uint64_t arrived() const { return arrived_; }
  // Waits for the next acknowledgement and returns its count. Other calls may run concurrently.
  // Pass the count to `arrive`.
  uint64_t receive();
  void arrive(uint64_t count);

 private:
  void send(const Header& header, std::vector<std::byte> bytes);

  std::shared_ptr<comm::Group> group_;
  int peer_, range_;
  Outbox outbox_;
  uint64_t sent_ = 0, arrived_ = 0;
};

// The backup's side: applies each change until the primary leaves. `slot` is null until the range
// has been set up.
void keep_copy(const std::shared_ptr<comm::Group>& group, int peer, int range,
               std::shared_ptr<KeptRange>& slot, const UserRules& rules);

// Transfer of a whole range between two memberships.
void send_range(Outbox& outbox, KeptRange& range);
std::shared_ptr<KeptRange> receive_range(comm::Group& group, int peer, uint32_t tag,
                                         const UserRules& rules);

}  // namespace artel::ps
