#include <unistd.h>

#include "artel/base/log.h"
#include "artel/comm/control/hub.h"
#include "artel/comm/control/wire.h"
#include "tests/fuzz/member.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::hub_member {
namespace {

using namespace comm::control;

std::string hello(int rank) {
  return encode(
      {FrameType::hello,
       to_body(Hello{.rank = rank, .size = 2, .host = "n01", .process = 7, .door = "n01:9"})});
}

}  // namespace

// Data from a process that knows the token, at rank 0 of a group of two.
void read(const Bytes& bytes) {
  static const Endpoint place = {fmt::format("@artel-fuzz-hub-member-{}", ::getpid()), 0};
  set_log_level(LogLevel::error);
  const Hub hub({.endpoint = place, .token = "secret", .size = 2});
  with_name(bytes,
            [&] { say_as_member(connect_to(place, Deadline::after(20)), bytes.text(), false); });
  // A hub ends at once when rank 0 has left it. It keeps its connections until then.
  Reached zero = reach(place, 1);
  if (zero.socket.get() >= 0) say_as_member(std::move(zero.socket), hello(0), false);
}

std::vector<std::string> seeds() {
  const std::string news = encode({FrameType::blob, "blob"}) + encode({FrameType::beat, "step 7"}) +
                           encode({FrameType::vitals, to_body(RankVitals{1, "text"})});
  return {hello(1) + news + encode({FrameType::leave, ""}), hello(kAnyRank) + news,
          hello(0) + news + encode({FrameType::failure, to_body(Failure{.cause = "it died"})}),
          hello(kAnyServer)};
}

}  // namespace artel::fuzz::hub_member
