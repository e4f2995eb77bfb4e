#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm {

std::unique_ptr<Transport> make_gloo_transport(const GroupOptions&, const std::string&) {
  fail(ErrorKind::unsupported,
       "[comm] transport gloo is not in this build; try installing libgloo-dev and building again, "
       "or transport shm on one machine");
}

}  // namespace artel::comm
