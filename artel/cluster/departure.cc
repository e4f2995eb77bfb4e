#include "artel/cluster/departure.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/control/link.h"

namespace artel {

void announce_departure(const Door& door, const Membership& membership,
                        const comm::control::Participant& self) {
  using namespace comm::control;
  constexpr double kSeconds = 1;
  std::vector<Link> links;
  for (const Participant& member : membership.everybody()) {
    if (member.number == self.number) continue;
    Reached reached = reach(parse_endpoint(member.door), kSeconds);
    if (reached.socket.get() < 0) continue;
    links.emplace_back(std::move(reached.socket));
    links.back().introduce(door.secret(), FrameType::request,
                           to_body(DoorRequest{.purpose = DoorRequest::Purpose::leave,
                                               .generation = membership.generation,
                                               .self = self}));
  }
  // Members must know it before their group fails.
  const Deadline deadline = Deadline::after(kSeconds);
  while (!links.empty() && !deadline.passed()) {
    std::erase_if(links, [](Link& link) {
      bool heard = false;
      link.flush();
      link.read([&](const Frame& frame) { heard |= frame.type != FrameType::beat; });
      return heard || link.closed;
    });
    if (!links.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace artel
