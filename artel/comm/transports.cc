#include "artel/comm/transports.h"

#include "artel/base/text.h"

namespace artel::comm {

std::unique_ptr<Transport> make_transport(const GroupOptions& options) {
  if (options.transport == "shm") return make_shm_transport(options);
  if (options.transport == "gloo") return make_gloo_transport(options);
  if (options.transport == "mpi") return make_mpi_transport(options);
  fail(ErrorKind::invalid_argument, "[comm] transport: got '{}', expected shm, gloo or mpi{}",
       options.transport, did_you_mean(options.transport, {"shm", "gloo", "mpi"}));
}

}  // namespace artel::comm
