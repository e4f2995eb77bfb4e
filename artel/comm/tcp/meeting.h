// Connects the ranks of a group: each calls the ranks before it and listens for the ranks after it.
// Both ends of every connection prove that they belong to the run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/connection/run_secret.h"
#include "artel/comm/connection/stream.h"

namespace artel::comm::tcp {

struct MeetingOptions {
  int rank = 0;
  std::vector<std::string> addresses;  // of all ranks, HOST:PORT
  std::vector<std::string> hosts;      // their names, for messages
  std::string group;                   // a text shared by exactly these ranks at these addresses
  RunSecret secret;
  Deadline deadline;
  std::function<void()> meanwhile = {};  // called periodically; ends the wait by throwing
};

struct Met {
  Stream stream;
  std::string received;  // bytes received so far
};

// Returns the connections by rank, empty for this rank. `listener` accepts connections to this
// rank.
std::vector<Met> meet(const FileHandle& listener, const MeetingOptions& options);

}  // namespace artel::comm::tcp
