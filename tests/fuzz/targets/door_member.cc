#include <unistd.h>

#include <memory>

#include "artel/base/log.h"
#include "artel/cluster/door.h"
#include "artel/comm/control/wire.h"
#include "tests/fuzz/member.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::door_member {
namespace {

using namespace comm::control;

Participant who(int number) {
  return {.number = number, .host = "n01", .process = 7, .door = fmt::format("n01:{}", number + 1)};
}

}  // namespace

// Data from a process that knows the token, at the door of worker 0 of three.
void read(const Bytes& bytes) {
  static const Endpoint place = {fmt::format("@artel-fuzz-door-member-{}", ::getpid()), 0};
  static std::unique_ptr<Door> door;
  static int visits = 0;
  constexpr int kVisits = 1000;  // a door remembers the numbers of its visitors
  set_log_level(LogLevel::error);
  if (visits++ % kVisits == 0) {
    door.reset();
    door = std::make_unique<Door>(place, "secret");
    door->set_membership(4, {who(0), who(1), who(2)}, 0, 9);
  }
  with_name(bytes,
            [&] { say_as_member(connect_to(place, Deadline::after(20)), bytes.text(), true); });
  for (const Door::Guest& guest : door->members_here())
    door->tell(guest.id, {FrameType::beat, "0"});
  for (const Door::Guest& guest : door->newcomers()) door->tell(guest.id, {FrameType::beat, "0"});
  door->dismiss();
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  using Purpose = DoorRequest::Purpose;
  for (const Purpose purpose :
       {Purpose::enter, Purpose::probe, Purpose::join, Purpose::leave, Purpose::dismiss}) {
    const bool joins = purpose == Purpose::join;
    const DoorRequest request = {.purpose = purpose,
                                 .generation = joins ? -1 : 4,
                                 .self = who(joins ? -1 : 1),
                                 .introduction = joins ? "the same" : "",
                                 .unreachable = {2}};
    all.push_back(encode({FrameType::request, to_body(request)}) + encode({FrameType::agree, ""}));
  }
  all.push_back(encode({FrameType::hello, to_body(Hello{.size = 3})}));
  return all;
}

}  // namespace artel::fuzz::door_member
