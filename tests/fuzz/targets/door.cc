#include "artel/cluster/door.h"

#include <unistd.h>

#include "artel/base/log.h"
#include "artel/comm/control/wire.h"
#include "tests/fuzz/stranger.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::door {

// Data from a foreign process at the door of a worker that trains.
void read(const Bytes& bytes) {
  using comm::control::Endpoint;
  static const Endpoint place = {fmt::format("@artel-fuzz-door-{}", ::getpid()), 0};
  static const Door door(place, "secret");
  set_log_level(LogLevel::error);
  say(comm::control::connect_to(place, Deadline::after(20)), bytes.text());
}

std::vector<std::string> seeds() {
  using namespace comm::control;
  const Participant who = {.number = 3, .host = "n01", .process = 7, .door = "n01:9"};
  return {encode({FrameType::request, to_body(DoorRequest{.self = who})}),
          encode({FrameType::request,
                  to_body(DoorRequest{.purpose = DoorRequest::Purpose::dismiss, .self = who})}),
          encode({FrameType::hello, to_body(Hello{.size = 3})})};
}

}  // namespace artel::fuzz::door
