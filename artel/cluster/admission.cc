#include "artel/cluster/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/base/version.h"
#include "artel/cluster/differences.h"

namespace artel {
namespace {

using comm::control::Participant;

std::string differences_from_run(const std::string& newcomer, const std::string& run) {
  std::vector<std::string> all;
  for (const Difference& each : differences(newcomer, run))
    all.push_back(fmt::format("it has '{}', the run has '{}'",
                              each.own.empty() ? "nothing" : each.own,
                              each.other.empty() ? "nothing" : each.other));
  return listed(std::move(all));
}

}  // namespace

std::string server_introduction() { return fmt::format("version = {}", kHeaderVersion); }

bool Admission::examine(Door& door, Room room) {
  accepted_.clear();
  for (const Door::Guest& guest : door.newcomers()) {
    const bool serves = guest.request.self.server >= 0;
    int& present = serves ? room.servers : room.workers;
    const std::string why =
        objection(guest.request, present, serves ? room.most_servers : room.most_workers);
    if (!why.empty()) {
      door.tell(guest.id, {comm::control::FrameType::refusal, why});
      continue;
    }
    accepted_.insert(guest.id);
    ++present;
  }
  return !accepted_.empty();
}

std::string Admission::objection(const comm::control::DoorRequest& newcomer, int present,
                                 int most) const {
  const bool serves = newcomer.self.server >= 0;
  if (present >= most)
    return fmt::format("it has {} already, as many as it can use ({})",
                       counted(present, serves ? "server" : "worker"),
                       serves ? "cluster.servers" : "cluster.lanes, cluster.workers");
  constexpr int kMostMissed = 3;
  if (const auto missed = missed_.find(newcomer.self.door);
      missed != missed_.end() && missed->second >= kMostMissed)
    return fmt::format(
        "it was admitted {} times but could not be reached at {} when the group formed",
        kMostMissed, newcomer.self.door);
  const std::string expected = serves ? server_introduction() : introduction_;
  if (newcomer.introduction == expected) return {};
  return "it was started differently: " + differences_from_run(newcomer.introduction, expected);
}

void Admission::note_agreed(const comm::control::Roster& roster) {
  accepted_.clear();
  for (const std::string& newcomer : admitted_)
    if (std::ranges::none_of(roster.members,
                             [&](const Participant& member) { return member.door == newcomer; }))
      ++missed_[newcomer];
  admitted_.clear();
  for (const comm::control::Roster::Change& change : roster.changes)
    if (change.what == "joins")
      for (const Participant& member : roster.members)
        if (member.number == change.number) admitted_.insert(member.door);
}

}  // namespace artel
