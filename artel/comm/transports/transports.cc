#include "artel/comm/transports/transports.h"

#include "artel/base/registry.h"
#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm {
namespace {

Registry<TransportDefinition>& registry() {
  static Registry<TransportDefinition> all(
      "transport",
      [] {
        std::vector<TransportDefinition> definitions = {
            {.name = "shm",
             .help = "one machine",
             .meeting = Meeting::name,
             .encrypted_by = "shm",  // nothing leaves the machine
             .make = make_shm_transport},
            // Gloo, as Debian has it, does not encrypt.
            {.name = "gloo",
             .help = "several machines",
             .meeting = Meeting::address,
             .encrypted_by = "tcp",
             .make = [](const GroupOptions& options) { return make_gloo_transport(options); }},
            {.name = "tcp",
             .help = "like `gloo`, with authenticated connections",
             .meeting = Meeting::address,
             .encrypted_by = "tcp",
             .make = [](const GroupOptions& options) { return make_tcp_transport(options); }},
            {.name = "mpi",
             .help = "workers started by `mpirun` or `srun`",
             .meeting = Meeting::launcher,
             .make = make_mpi_transport},
        };
        Registry<TransportDefinition>::Entries entries;
        for (TransportDefinition& definition : definitions)
          entries.emplace_back(definition.name, std::move(definition));
        return entries;
      }(),
      Names::words);
  return all;
}

}  // namespace

void register_transport(TransportDefinition definition) {
  require_function("transport", definition.name, definition.make);
  std::string name = definition.name;
  registry().add(std::move(name), std::move(definition));
}

const TransportDefinition& find_transport(std::string_view name) {
  const TransportDefinition* const found = registry().find(name);
  require(found, ErrorKind::invalid_argument, "[comm] transport: got '{}', expected one of {}{}",
          name, join(registry().names(), ", "), did_you_mean(name, registry().names()));
  return *found;
}

std::vector<const TransportDefinition*> transports() { return registry().all(); }

Meeting meeting_of(const GroupOptions& options) {
  return find_transport(options.transport).meeting;
}

std::unique_ptr<Transport> make_transport(const GroupOptions& options) {
  const TransportDefinition& named = find_transport(options.transport);
  if (!options.encrypt) return named.make(options);
  require(!named.encrypted_by.empty(), ErrorKind::unsupported,
          "[comm] encryption: got transport {}, whose connections are not ours; try gloo (artel "
          "launch or --join), or a network that MPI encrypts",
          named.name);
  return find_transport(named.encrypted_by).make(options);
}

}  // namespace artel::comm
