// The transports by name.
//
//   // A custom transport that extends shared memory, as cluster.transport = "slow".
//   artel::comm::register_transport(
//       {.name = "slow", .help = "Shared memory, for tests.", .make = [](auto options) {
//          options.transport = "shm";
//          return artel::comm::make_transport(options);
//        }});
//
// To add a built-in transport: a folder with its transport.cc, a declaration here, and a line in
// transports.cc. For a library that a build lacks, a file unavailable.cc reports that.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artel/comm/options.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm {

// Rendezvous of the ranks of a group.
enum class Meeting {
  name,      // all on one machine, by any name that they agree on
  address,   // at HOST:PORT of rank 0
  launcher,  // its own launcher has connected them
};

struct TransportDefinition {
  std::string name;
  std::string help;
  Meeting meeting = Meeting::name;
  // The transport used instead if connections are encrypted: itself if it can encrypt, empty if
  // none can.
  std::string encrypted_by = {};
  // Returns when all ranks have joined.
  std::function<std::unique_ptr<Transport>(const GroupOptions&)> make = {};
};

// Replaces a transport that the program registered earlier. Throws for a name that comes with
// Artel. All workers register the same.
void register_transport(TransportDefinition definition);
// Throws for an unknown name, suggesting the nearest one.
const TransportDefinition& find_transport(std::string_view name);
std::vector<const TransportDefinition*> transports();

// The rendezvous of such a group.
Meeting meeting_of(const GroupOptions& options);

// Returns when all ranks have joined. Throws for an unknown or missing transport.
std::unique_ptr<Transport> make_transport(const GroupOptions& options);

}  // namespace artel::comm
