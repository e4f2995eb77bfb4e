// Waits for a peer until it arrives, the deadline passes, or the group fails. Meanwhile a watchdog
// logs which rank is being waited for.
#pragma once

#include <algorithm>

#include "artel/base/time.h"
#include "artel/comm/collectives/operation.h"
#include "artel/comm/options.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm {

class Patience {
 public:
  // The transport, the operation and the options must outlive this object.
  Patience(Transport& transport, const Operation& operation, Deadline deadline,
           const WatchOptions& watch)
      : transport_(transport), operation_(operation), deadline_(deadline), watch_(watch) {}

  const Operation& operation() const { return operation_; }
  Transport& transport() { return transport_; }

  // Calls attempt() until it returns true. It should block for about slice() seconds at most.
  // Throws a timeout at the deadline, or the cause if the group failed.
  template <typename Attempt>
  void wait_for(int peer, Attempt&& attempt) {
    const Clock::time_point since = Clock::now();
    while (!attempt()) look(peer, since);
  }

  void wait_for(int peer, Transfer& transfer) {
    wait_for(peer, [&] { return transfer.wait(slice()); });
  }

  double slice() const { return std::min(0.1, deadline_.left()); }

 private:
  void look(int peer, Clock::time_point since);
  void give_up_the_silent(int peer);
  void give_up_a_cut_path(int peer, double waited);

  Transport& transport_;
  const Operation& operation_;
  Deadline deadline_;
  const WatchOptions& watch_;
  double next_report_ = 0;
  bool has_left_ = false;
};

}  // namespace artel::comm
