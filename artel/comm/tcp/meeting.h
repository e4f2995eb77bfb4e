// How the ranks of a group get a connection to each other: each calls those before it and listens
// for those after it, and both ends of every connection prove that they belong to the run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/run_secret.h"
#include "artel/comm/stream.h"

namespace artel::comm::tcp {

struct MeetingOptions {
  int rank = 0;
  std::vector<std::string> addresses;  // of all ranks, HOST:PORT
  std::vector<std::string> hosts;      // their names, for messages
  std::string group;                   // what only these ranks at these addresses have in common
  RunSecret secret;
  Deadline deadline;
  std::function<void()> meanwhile = {};  // called now and then; ends the wait by throwing
};

struct Met {
  Stream stream;
  std::string received;  // what has arrived already
};

// By rank; the own one has none. `listener` is where this rank is found.
std::vector<Met> meet(const FileHandle& listener, const MeetingOptions& options);

}  // namespace artel::comm::tcp
