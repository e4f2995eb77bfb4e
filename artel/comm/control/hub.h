// Rank 0's side of the control connections: a thread that admits the ranks, passes information
// between them, reports failures to all, and notices ranks that disappear.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "artel/base/time.h"
#include "artel/comm/control/socket.h"

namespace artel::comm::control {

struct HubOptions {
  Endpoint endpoint;  // port 0: any free one
  std::string token;  // of the run; may be empty only where no other machine can reach this
  bool encrypt = false;
  int size = 1;
  int servers = 0;                              // the last ranks
  std::function<bool(int rank)> is_vital = {};  // ranks whose death ends the group; absent: all
};

class Hub {
 public:
  // Starts to listen. Throws if it cannot.
  explicit Hub(const HubOptions& options);
  // Rank 0 must have closed its connection; returns when all ranks have been told.
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  uint16_t port() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace artel::comm::control
