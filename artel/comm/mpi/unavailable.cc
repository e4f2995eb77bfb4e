#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm {

std::unique_ptr<Transport> make_mpi_transport(const GroupOptions&) {
  fail(ErrorKind::unsupported,
       "[comm] transport mpi is not in this build; try installing an MPI library (libopenmpi-dev) "
       "and building again, or transport gloo");
}

}  // namespace artel::comm
