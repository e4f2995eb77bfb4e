#include "artel/comm/control/hub.h"

#include <unistd.h>

#include "artel/base/log.h"
#include "artel/comm/control/wire.h"
#include "tests/fuzz/stranger.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::hub {

// Data from a foreign process at rank 0 of a group that is being formed.
void read(const Bytes& bytes) {
  using comm::control::Endpoint;
  static const Endpoint place = {fmt::format("@artel-fuzz-hub-{}", ::getpid()), 0};
  static const comm::control::Hub hub({.endpoint = place, .token = "secret", .size = 3});
  set_log_level(LogLevel::error);
  say(comm::control::connect_to(place, Deadline::after(20)), bytes.text());
}

std::vector<std::string> seeds() {
  using namespace comm::control;
  const std::string hello = encode({FrameType::hello, to_body(Hello{.size = 3, .host = "n01"})});
  return {hello, hello + encode({FrameType::blob, "blob"}), encode({FrameType::leave, ""})};
}

}  // namespace artel::fuzz::hub
