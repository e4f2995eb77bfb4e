#include "artel/comm/transports.h"

#include "artel/base/text.h"

namespace artel::comm {

std::unique_ptr<Transport> make_transport(const GroupOptions& options) {
  if (options.transport == "shm") return make_shm_transport(options);
  // Gloo, as Debian has it, does not encrypt.
  if (options.transport == "tcp" || (options.transport == "gloo" && options.encrypt))
    return make_tcp_transport(options);
  if (options.transport == "gloo") return make_gloo_transport(options);
  require(options.transport != "mpi" || !options.encrypt, ErrorKind::unsupported,
          "[comm] encryption: got transport mpi, whose connections are not ours; try gloo (artel "
          "launch or --join), or a network that MPI encrypts");
  if (options.transport == "mpi") return make_mpi_transport(options);
  fail(ErrorKind::invalid_argument, "[comm] transport: got '{}', expected shm, gloo, tcp or mpi{}",
       options.transport, did_you_mean(options.transport, {"shm", "gloo", "tcp", "mpi"}));
}

}  // namespace artel::comm
